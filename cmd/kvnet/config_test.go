package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// loaded parses settings as `kvnet server` does.
func loaded(t *testing.T, args ...string) (*config, error) {
	t.Helper()
	c := &config{}
	cmd := &cobra.Command{Use: "server", RunE: func(cmd *cobra.Command, _ []string) error { return c.load(cmd) }}
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	c.flags(cmd.Flags())
	cmd.SetArgs(args)
	return c, cmd.Execute()
}

func file(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "kvnet.yaml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFlagWinsOverEnvironmentOverFile(t *testing.T) {
	f := file(t, "name: from-file\naudit-interval: 7s\nrest-listen: 127.0.0.1:1\njoin: [a:1, b:2]\nstore-endpoints: [http://x:1, http://y:2]\nsnat-zone-base: 9\nmanage-bridges: false\n")
	t.Setenv("KVNET_NAME", "from-env")
	t.Setenv("KVNET_REST_LISTEN", "127.0.0.1:2")
	c, err := loaded(t, "--config", f, "--rest-listen", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	if c.restListen != "127.0.0.1:3" || c.name != "from-env" || c.auditInterval != 7*time.Second || c.snatZoneBase != 9 || c.manageBridges {
		t.Errorf("%+v", c)
	}
	if strings.Join(c.join, " ") != "a:1 b:2" || strings.Join(c.storeEndpoints, " ") != "http://x:1 http://y:2" {
		t.Errorf("%q %q", c.join, c.storeEndpoints)
	}
}

func TestAVariableThatNamesNoSettingIsRefused(t *testing.T) {
	for _, name := range []string{"KVNET_PASSWORD", "KVNET_URL", "KVNET_TEST_LOG", "KVNET_BINARY",
		"KVNET_SERVICE_HOST", "KVNET_REST_SERVICE_PORT_HTTP", "KVNET_PORT", "KVNET_PORT_8181_TCP_ADDR"} {
		t.Setenv(name, "x")
	}
	if _, err := loaded(t); err != nil {
		t.Error(err)
	}
	t.Setenv("KVNET_BOOTSTRAP_EXPEKT", "3")
	_, err := loaded(t)
	if exitCode(err) != 2 || !strings.Contains(err.Error(), "KVNET_BOOTSTRAP_EXPEKT") || strings.Contains(err.Error(), "KVNET_PORT") {
		t.Errorf("error %v", err)
	}
}

func TestAKeyThatOthersCanReadIsWarnedOf(t *testing.T) {
	key := file(t, "key")
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		warnOfOpenKey(key, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), key); got != warned {
			t.Errorf("mode %v: %q", mode, log.String())
		}
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	cases := []struct {
		law  string
		args []string
		want string
	}{
		{"an address needs a port", []string{"--rest-listen", "127.0.0.1"}, "--rest-listen"},
		{"a preset is known", []string{"--gossip-preset", "wan"}, `"wan" is neither lan nor rack`},
		{"zones are left", []string{"--snat-zone-base", "65535"}, "--snat-zone-base"},
		{"a zone base is a number of 16 bits", []string{"--snat-zone-base", "65536"}, "snat-zone-base"},
		{"an interval is no trifle", []string{"--audit-interval", "1ms"}, "--audit-interval"},
		{"a key needs its certificate", []string{"--rest-tls-key", "k"}, "--rest-tls-cert"},
		{"TLS for switches needs its files", []string{"--openflow-tls-listen", "127.0.0.1:6654", "--openflow-tls-cert", "c", "--openflow-tls-key", "k"}, "--openflow-tls-ca"},
		{"its address is one", []string{"--openflow-tls-listen", "6654", "--openflow-tls-cert", "c", "--openflow-tls-key", "k", "--openflow-tls-ca", "a"}, "--openflow-tls-listen"},
		{"its files need an address", []string{"--openflow-tls-ca", "a"}, "--openflow-tls-listen"},
		{"switches can connect", []string{"--openflow-listen", "-"}, "--openflow-tls-listen"},
		{"a name is there", []string{"--name", ""}, "--name: a server needs one"},
		{"a name has no slash", []string{"--name", "a/b c"}, "all but / and control characters"},
		{"an external store has URLs", []string{"--store-endpoints", "foo"}, `--store-endpoints: "foo"`},
		{"a store that others reach is protected", []string{"--store-listen", "0.0.0.0:2380"}, "--gossip-key-file, or certificates with --store-peer-cert"},
		{"the file exists", []string{"--config", "/nowhere/kvnet.yaml"}, "read the settings"},
		{"the file names settings", []string{"--config", file(t, "colour: red\n")}, `there is no setting "colour"`},
		{"the file's values fit", []string{"--config", file(t, "audit-interval: soon\n")}, "audit-interval"},
		{"the file is YAML", []string{"--config", file(t, ":\n\t-")}, "read the settings"},
	}
	for _, c := range cases {
		t.Run(c.law, func(t *testing.T) {
			if _, err := loaded(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
}

func TestSettingsWithoutAPartSaySo(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--join", "a:1", "--kubeconfig", "k", "--manage-bridges=false"}, "--kubeconfig"},
		{[]string{"--manage-bridges"}, "--manage-bridges"},
		{[]string{"--config", file(t, "manage-bridges: true\n")}, "--manage-bridges"},
	} {
		settings := &config{}
		cmd := &cobra.Command{Use: "server", RunE: func(cmd *cobra.Command, _ []string) error { return settings.load(cmd) }}
		settings.flags(cmd.Flags())
		cmd.SetArgs(append([]string{}, c.args...))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(settings.notYet(cmd.Flags()), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}
