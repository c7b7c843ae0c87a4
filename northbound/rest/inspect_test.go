package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvnet/model"
)

// watching is an Inspector with something to tell.
type watching struct{}

func (watching) Flows(string, string) (FlowsReport, error) {
	return FlowsReport{
		Flows: []FlowView{
			{Switch: "of:0000000000000001", Owner: "snat/r1", Rule: "table=31,actions=drop", State: "installed"},
			{Switch: "of:0000000000000002", Owner: "snat/r1/port/a", Rule: "table=31,actions=drop", State: "refused", Reason: "a<b"},
			{Switch: "of:0000000000000001", Owner: "snat/r10", Rule: "table=32,actions=drop", State: "pending"},
		},
		Waiting: []WaitingView{{"snat/r1", "network n"}, {"lb/web", "port"}},
	}, nil
}

func (watching) Switches() []SwitchView {
	return []SwitchView{{ID: "of:0000000000000001", Address: "10.0.0.1:5", Node: "gw", Role: model.RoleMaster,
		Generation: 1<<63 + 1, Flows: 5, Groups: 1, LastError: "e", Connected: true, TLS: true}}
}

func (watching) Cluster() []MemberView {
	return []MemberView{{"kvnet", "127.0.0.1", 7946, "READY", time.UnixMilli(1700000000123)}}
}

// elsewhere is an Inspector of a server that doesn't lead.
type elsewhere struct{ watching }

func (elsewhere) Flows(string, string) (FlowsReport, error) {
	return FlowsReport{}, errors.New(`ask "server-2"`)
}

func TestFlowsAreToldByTheLeaderOnly(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Inspector = elsewhere{} })
	r := l.must(503, "GET", ownPath+"/flows", "")
	if !strings.Contains(string(r.body), `server-2`) || r.header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %q", r.body, r.header.Get("Retry-After"))
	}
	l.must(400, "GET", ownPath+"/flows?switch=br-int", "")
	l.must(200, "GET", ownPath+"/switches", "")
}

func TestInspection(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Inspector = watching{} })
	const (
		f1 = `{"switch":"of:0000000000000001","owner":"snat/r1","rule":"table=31,actions=drop","state":"installed","reason":""}`
		f2 = `{"switch":"of:0000000000000002","owner":"snat/r1/port/a","rule":"table=31,actions=drop","state":"refused","reason":"a<b"}`
		f3 = `{"switch":"of:0000000000000001","owner":"snat/r10","rule":"table=32,actions=drop","state":"pending","reason":""}`
		w1 = `{"owner":"snat/r1","for":"network n"}`
		w2 = `{"owner":"lb/web","for":"port"}`
	)
	for query, want := range map[string]string{
		"":                          `{"flows":[` + f1 + `,` + f2 + `,` + f3 + `],"waiting":[` + w1 + `,` + w2 + `]}`,
		"?owner=snat%2Fr1":          `{"flows":[` + f1 + `,` + f2 + `],"waiting":[` + w1 + `]}`,
		"?owner=snat":               `{"flows":[` + f1 + `,` + f2 + `,` + f3 + `],"waiting":[` + w1 + `]}`,
		"?switch=of:1&owner=snat/":  `{"flows":[` + f1 + `,` + f3 + `],"waiting":[` + w1 + `]}`,
		"?owner=sna":                `{"flows":[],"waiting":[]}`,
		"?switch=of:3&owner=lb/web": `{"flows":[],"waiting":[` + w2 + `]}`,
	} {
		if r := l.must(200, "GET", ownPath+"/flows"+query, ""); string(r.body) != want {
			t.Errorf("flows%s: %s\nwant %s", query, r.body, want)
		}
	}
	l.must(400, "GET", ownPath+"/flows?switch=br-int", "")
	if r := l.must(200, "GET", ownPath+"/switches", ""); string(r.body) != `{"switches":[{"id":"of:0000000000000001","address":"10.0.0.1:5","node":"gw",`+
		`"role":"MASTER","generation":9223372036854775809,"flows":5,"groups":1,"lastError":"e","connected":true,"tls":true}]}` {
		t.Errorf("switches %s", r.body)
	}
	if r := l.must(200, "GET", "/onos/v1/cluster", ""); string(r.body) != `{"nodes":[{"id":"kvnet","ip":"127.0.0.1","tcpPort":7946,"status":"READY","lastUpdate":"1700000000123"}]}` {
		t.Errorf("cluster %s", r.body)
	}
}

func TestMetrics(t *testing.T) {
	l := newLab(t)
	l.must(200, "GET", networksPath, "")
	l.must(404, "GET", networksPath+"/x", "")
	l.call("FOO", networksPath, "")
	l.send("GET", networksPath, nil, nil)
	l.must(404, "GET", "/nowhere", "")
	get := func(path string) *http.Response {
		resp, err := l.client.Get("http://" + l.server.MetricsAddr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := get("/metrics")
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("metrics: %d %v", resp.StatusCode, err)
	}
	for _, want := range []string{
		`kvnet_build_info{goversion="`, `version="test"} 1`,
		`kvnet_rest_request_duration_seconds_count{method="GET",route="` + networksPath + `",status="200"} 1`,
		`kvnet_rest_request_duration_seconds_count{method="GET",route="` + networksPath + `/:id",status="404"} 1`,
		`kvnet_rest_request_duration_seconds_count{method="other",route="none",status="405"} 1`,
		`kvnet_rest_request_duration_seconds_count{method="GET",route="none",status="404"} 1`,
		`kvnet_rest_auth_failures_total 1`,
	} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	resp = get("/other")
	_ = resp.Body.Close()
	if resp.StatusCode != 404 || resp.Header.Get("Content-Type") != jsonType {
		t.Errorf("beside the metrics: %d %v", resp.StatusCode, resp.Header)
	}
}
