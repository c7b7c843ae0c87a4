package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"kvnet/integration/freeport"
	"kvnet/southbound/openflow/oftest"
)

// start runs a server until the test ends and returns its settings.
func start(t *testing.T, dir string) *config {
	t.Helper()
	return startWith(t, dir, prometheus.NewRegistry())
}

// startWith is start with the metrics in a registry of the test's, and with settings
// that the test changes.
func startWith(t *testing.T, dir string, registry *prometheus.Registry, change ...func(*config)) *config {
	t.Helper()
	c := &config{}
	c.flags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	c.name, c.dataDir, c.manageBridges = "test", dir, false
	for _, a := range []*string{&c.restListen, &c.openflowListen, &c.metricsListen, &c.storeListen} {
		*a = freePort(t)
	}
	for _, f := range change {
		f(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runWith(ctx, c, slog.New(slog.DiscardHandler), registry) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with: %v", err)
		}
	})
	eventually(t, "ready", func() bool {
		resp, err := http.Get("http://" + c.restListen + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode == http.StatusOK
	})
	return c
}

func freePort(t *testing.T) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func call(t *testing.T, c *config, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.restListen+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("onos", "rocks")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// role is the role and generation of the only switch.
func role(t *testing.T, c *config) (string, uint64) {
	t.Helper()
	_, body := call(t, c, http.MethodGet, "/kvnet/v1/switches", "")
	var v struct {
		Switches []struct {
			Role       string
			Generation uint64
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if len(v.Switches) != 1 {
		return "", 0
	}
	return v.Switches[0].Role, v.Switches[0].Generation
}

func TestSwitchThatRemembersALaterLeaderIsWonBackWhileTheStoreIsYoung(t *testing.T) {
	c := start(t, t.TempDir())
	s := oftest.New(0xa1, "p1")
	later := uint64(time.Now().Unix()+100_000)<<32 | 7
	s.SetGeneration(later)
	addr, err := net.ResolveTCPAddr("tcp", c.openflowListen)
	if err != nil {
		t.Fatal(err)
	}
	s.Keep(t, addr)
	var generation uint64
	eventually(t, "MASTER with a later generation", func() bool {
		var r string
		r, generation = role(t, c)
		return r == "MASTER" && generation > later
	})
	// The rules follow under the new term.
	code, body := call(t, c, http.MethodPost, "/onos/kubevirtnode/node",
		`{"nodes":[{"hostname":"gw1","type":"GATEWAY","managementIp":"192.0.2.1","integrationBridge":"of:00000000000000a1","tunnelBridge":"of:00000000000000b1"}]}`)
	if code != http.StatusCreated {
		t.Fatal(body)
	}
	eventually(t, "base rules", func() bool { return len(s.Rules()) == 4 })

	var out bytes.Buffer
	t.Setenv("KVNET_PASSWORD", "rocks")
	if err := raiseEpoch(t.Context(), &out, "http://"+c.restListen, "onos"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "The epoch is ") {
		t.Error(out.String())
	}
	eventually(t, "MASTER with the raised epoch", func() bool {
		r, g := role(t, c)
		return r == "MASTER" && g>>32 > generation>>32
	})
	mods := s.Counts().FlowMods
	if mods != 4 {
		t.Errorf("%d flow-mods, not the 4 of the base rules", mods)
	}
}

func TestRaiseEpochSaysWhatIsWrong(t *testing.T) {
	c := start(t, t.TempDir())
	t.Setenv("KVNET_PASSWORD", "wrong")
	err := raiseEpoch(t.Context(), io.Discard, "http://"+c.restListen, "onos")
	if err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("error %v", err)
	}
}
