package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestThePageOfMetricsNamesThemAll(t *testing.T) {
	registry := prometheus.NewRegistry()
	startWith(t, t.TempDir(), registry)
	descs := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descs)
		close(descs)
	}()
	name := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	published := map[string]bool{}
	for d := range descs {
		m := name.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("no name in %s", d)
		}
		if !strings.HasPrefix(m[1], "go_") && !strings.HasPrefix(m[1], "process_") {
			published[m[1]] = true
		}
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if described[m[1]] {
			t.Errorf("the page has %s twice", m[1])
		}
		described[m[1]] = true
	}
	for n := range published {
		if !described[n] {
			t.Errorf("the page lacks %s", n)
		}
	}
	for n := range described {
		if !published[n] {
			t.Errorf("the page has %s, which does not exist", n)
		}
	}
	if len(described) < 30 {
		t.Errorf("the page has only %q", slices.Sorted(maps.Keys(described)))
	}
}

func TestTheOnlyMemberLeadsAndIsUpToDate(t *testing.T) {
	c := start(t, t.TempDir())
	type member struct {
		Name, Address, State, Version string
		Leader                        bool
		Term, Lag                     int64
	}
	want := member{Name: "test", Address: "127.0.0.1:7946", State: "alive", Version: version, Leader: true, Term: 1}
	var body string
	eventually(t, "the member leads", func() bool {
		var v struct{ Members []member }
		_, body = call(t, c, http.MethodGet, "/kvnet/v1/members", "")
		return json.Unmarshal([]byte(body), &v) == nil && len(v.Members) == 1 && v.Members[0] == want
	})
	var nodes struct {
		Nodes []struct {
			ID, IP  string
			TCPPort int
		}
	}
	if _, body := call(t, c, http.MethodGet, "/onos/v1/cluster", ""); json.Unmarshal([]byte(body), &nodes) != nil || len(nodes.Nodes) != 1 ||
		nodes.Nodes[0].ID != "test" || nodes.Nodes[0].IP != "127.0.0.1" || nodes.Nodes[0].TCPPort != 7946 {
		t.Errorf("ONOS's form of the cluster: %s", body)
	}
}

// The stream is open when the server is told to stop, and nothing is left.
func TestServerStopsBelowAStreamOfEvents(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var stream *http.Response
	t.Run("server", func(t *testing.T) {
		c := start(t, t.TempDir())
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+c.restListen+"/kvnet/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("guest", "guest")
		stream, err = http.DefaultClient.Do(req) //nolint:bodyclose // closed below, after the server
		if err != nil {
			t.Fatal(err)
		}
	})
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	_ = stream.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
