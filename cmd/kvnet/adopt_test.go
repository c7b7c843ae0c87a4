package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"kvnet/northbound/rest"
	"kvnet/southbound/openflow/oftest"
)

// adopt calls the command and returns what it prints.
func adopt(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KVNET_PASSWORD", "rocks")
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"adopt"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestAdoptNeedsACookieThatIsNotKvnets(t *testing.T) {
	var usage usageError
	if _, err := adopt(t); !errors.As(err, &usage) {
		t.Errorf("without a cookie: %v", err)
	}
	url := "http://" + start(t, t.TempDir()).restListen
	for cookie, part := range map[string]string{
		"0/0":                                   "everybody",
		"0x6b00000000000000/0xff00000000000000": "own mark",
		"ONOS":                                  "64-bit number",
	} {
		if _, err := adopt(t, "--url", url, "--cookie", cookie); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want something about %q", cookie, err, part)
		}
	}
}

func TestAdoptShowsTheSwitches(t *testing.T) {
	c := start(t, t.TempDir())
	addr, err := net.ResolveTCPAddr("tcp", c.openflowListen)
	if err != nil {
		t.Fatal(err)
	}
	oftest.New(0xa1, "p1").Keep(t, addr)
	url := "http://" + c.restListen
	eventually(t, "the switch is shown", func() bool {
		out, err := adopt(t, "--url", url, "--cookie", "0x00b5000000000000/0xffff000000000000")
		return err == nil && strings.Contains(out, "of:00000000000000a1  0 ") && strings.Contains(out, "dry run")
	})
	out, err := adopt(t, "--url", url, "--cookie", "0xb5000000000000/0xffff000000000000", "--yes", "--switch", "of:00000000000000a2")
	if err == nil || !strings.Contains(out, "not connected") || strings.Contains(out, "dry run") {
		t.Errorf("a switch that is not there: %v\n%s", err, out)
	}
	if _, err := adopt(t, "--url", url, "--user", "guest", "--cookie", "0xb5000000000000/0xffff000000000000"); err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusUnauthorized)) {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestAdoptNamesWhoStillWaits(t *testing.T) {
	var out bytes.Buffer
	err := adoptCall{yes: true}.show(&out, rest.AdoptReport{
		Switches: []rest.AdoptView{{ID: "of:1", Error: "the switch refuses it"}, {ID: "of:2"}},
		Waiting:  []rest.WaitingView{{Owner: "snat/r1", For: "the MAC of the peer"}},
	})
	if err == nil || !strings.Contains(err.Error(), "1 of 2") || !strings.Contains(out.String(), "snat/r1 waits for the MAC") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
