package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"kvnet/cluster/store"
	"kvnet/model"
)

// wholeAPIConfig has every field. All its secrets have "s3cret" in them.
const wholeAPIConfig = `{"scheme":"HTTPS","ipAddress":"192.0.2.7","port":6443,"state":"CONNECTED","datacenterId":"DC","caCertData":"Y2E=",` +
	`"clientCertData":"Y2VydA==","clientKeyData":"s3cret-key","token":"s3cret-token","serviceFqdn":"kvnet.example","controllerIp":"192.0.2.8"}`

func httpAPIConfig(address string, port int) string {
	return fmt.Sprintf(`{"scheme":"HTTP","ipAddress":"%s","port":%d}`, address, port)
}

// TestAPIConfigIsReadWithoutSecrets: no answer, no log line and no message holds
// the token or the key; the store does.
func TestAPIConfigIsReadWithoutSecrets(t *testing.T) {
	var log syncBuffer
	l := newLab(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	l.must(404, "GET", apiConfigPath, "")
	replies := []*reply{
		l.must(201, "POST", apiConfigPath, wholeAPIConfig),
		l.must(200, "GET", apiConfigPath, ""),
		l.must(400, "POST", apiConfigPath, wholeAPIConfig),
		l.must(400, "POST", apiConfigPath, strings.Replace(wholeAPIConfig, `"HTTPS"`, `"https"`, 1)),
		l.must(400, "POST", apiConfigPath, strings.Replace(wholeAPIConfig, `"Y2E="`, `""`, 1)),
		l.must(400, "POST", apiConfigPath, strings.Replace(wholeAPIConfig, `"s3cret-token"`, `["s3cret-token"]`, 1)),
		l.must(400, "POST", apiConfigPath, strings.Replace(wholeAPIConfig, `"s3cret-token"`, `"s3cret-token\ud800"`, 1)),
		l.must(400, "POST", apiConfigPath, strings.Replace(wholeAPIConfig, `"s3cret-key"`, `"s3cret-key`, 1)),
		l.must(204, "DELETE", apiConfigPath+"/https://192.0.2.9:1", ""),
	}
	const want = `{"scheme":"HTTPS","ipAddress":"192.0.2.7","port":6443,"state":"DISCONNECTED","datacenterId":"DC","clusterId":null,` +
		`"caCertData":"Y2E=","clientCertData":"Y2VydA==","serviceFqdn":"kvnet.example","controllerIp":"192.0.2.8"}`
	if got := string(replies[1].body); got != want {
		t.Errorf("GET %s, want %s", got, want)
	}
	if got := replies[0].header.Get("Location"); got != "http://"+l.server.Addr().String()+apiConfigPath {
		t.Errorf("Location %q", got)
	}
	for i, r := range replies {
		if strings.Contains(fmt.Sprint(r.header, string(r.body)), "s3cret") {
			t.Errorf("answer %d tells a secret: %v %s", i, r.header, r.body)
		}
	}
	stored := l.db.Snapshot().APIConfig()
	if stored.Token != "s3cret-token" || stored.ClientKeyData != "s3cret-key" {
		t.Error("the secrets are not stored")
	}
	slog.New(slog.NewTextHandler(&log, nil)).Info("a careless line", "config", stored, "token", stored.Token,
		"text", fmt.Sprintf("%v %+v %#v %s", stored, *stored, *stored, stored.ClientKeyData))
	if got := log.String(); strings.Contains(got, "s3cret") || !strings.Contains(got, "REST write") {
		t.Errorf("the log is %s", got)
	}
}

// TestAPIConfigIsDeletedByItsEndpoint in all writings of the URL. Another
// endpoint is no error, as in ONOS, but the answer says that nothing was deleted.
func TestAPIConfigIsDeletedByItsEndpoint(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct{ address, endpoint string }{
		{"192.0.2.7", "http://192.0.2.7:8080"},
		{"192.0.2.7", "http://192.0.2.7:8080/"},
		{"192.0.2.7", "http:%2F%2F192.0.2.7:8080"},
		{"192.0.2.7", "http%3A%2F%2F192.0.2.7%3A8080"},
		{"2001:db8::7", "http://2001:db8::7:8080"},
	} {
		l.must(201, "POST", apiConfigPath, httpAPIConfig(c.address, 8080))
		for _, other := range []string{"http:/" + c.address + ":8080", "HTTP://" + c.address + ":8080", "http:///" + c.address + ":8080", "http://x"} {
			r := l.must(204, "DELETE", apiConfigPath+"/"+other, "")
			if w := r.header.Get("Warning"); !strings.Contains(w, "nothing was deleted") || !strings.Contains(w, c.address) {
				t.Errorf("DELETE %s: Warning %q", other, w)
			}
		}
		l.must(200, "GET", apiConfigPath, "")
		if r := l.must(204, "DELETE", apiConfigPath+"/"+c.endpoint, ""); r.header.Get("Warning") != "" {
			t.Errorf("DELETE %s: Warning %q", c.endpoint, r.header.Get("Warning"))
		}
		l.must(404, "GET", apiConfigPath, "")
		l.must(304, "DELETE", apiConfigPath+"/"+c.endpoint, "")
	}
}

func TestAPIConfigMethods(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", apiConfigPath, "GET, HEAD, OPTIONS, POST"},
		{"DELETE", apiConfigPath, "GET, HEAD, OPTIONS, POST"},
		{"DELETE", apiConfigPath + "/", "GET, HEAD, OPTIONS, POST"},
		{"GET", apiConfigPath + "/http://h:1", "DELETE, OPTIONS"},
		{"PUT", apiConfigPath + "/http://h:1", "DELETE, OPTIONS"},
	} {
		r := l.must(405, c.method, c.path, "")
		got := r.header.Get("Allow")
		for m := range strings.SplitSeq(c.allow, ", ") {
			if !strings.Contains(got, m) {
				t.Errorf("%s %s: Allow %q lacks %s", c.method, c.path, got, m)
			}
		}
	}
}

// TestAPIConfigFields: what HTTPS needs, and which values are none.
func TestAPIConfigFields(t *testing.T) {
	with := func(fields string) string {
		return `{"scheme":"HTTPS","ipAddress":"192.0.2.7","port":6443,` + fields + `}`
	}
	for _, c := range []struct{ body, refused string }{
		{with(`"caCertData":"a","clientCertData":"b","clientKeyData":"c"`), ""},
		{with(`"token":"t"`), ""},
		{with(`"token":"t","caCertData":"a"`), ""},
		{with(`"token":"t","caCertData":"a","clientCertData":"b"`), "clientKeyData is required"},
		{with(`"token":"t","clientCertData":"b","clientKeyData":"c"`), "caCertData is required"},
		{with(`"token":"","caCertData":"a","clientKeyData":"c"`), "clientCertData is required"},
		{with(`"caCertData":"","clientCertData":"","clientKeyData":""`), "caCertData is empty"},
		{`{"scheme":"HTTP","ipAddress":"192.0.2.7","port":0}`, "port 0 is no port from 1 to 65535"},
		{`{"scheme":"HTTP","ipAddress":"192.0.2.7","port":65536}`, "port 65536 is no port from 1 to 65535"},
		{`{"scheme":"HTTP","ipAddress":"192.0.2.7","port":null}`, "port is required"},
		{`{"scheme":"HTTP","ipAddress":"192.0.2.7","port":8080.9}`, ""},
		{`{"scheme":"HTTP","ipAddress":"","port":1}`, "ipAddress is no IP address"},
		{`{"scheme":"","ipAddress":"192.0.2.7","port":1}`, `scheme "" is none of HTTP, HTTPS`},
		{`{"scheme":"HTTP","ipAddress":"192.0.2.7","port":1,"controllerIp":""}`, "controllerIp is no IP address"},
		{`{"scheme":"HTTP","ipAddress":"192.0.2.7","port":1,"controllerIp":null,"token":null,"apiServerFqdn":null}`, ""},
	} {
		_, err := decodeEdge[apiConfigJSON]([]byte(c.body))
		switch {
		case err == nil && c.refused != "":
			t.Errorf("%s is accepted", c.body)
		case err != nil && (c.refused == "" || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want %q", c.body, err, c.refused)
		}
	}
}

// TestAPIServerNameIsResolved once, when the configuration is written.
func TestAPIServerNameIsResolved(t *testing.T) {
	l := newLab(t)
	l.server.lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the resolution has no deadline")
		}
		switch name {
		case "api.example":
			return []netip.Addr{netip.MustParseAddr("192.0.2.44")}, nil
		case "empty.example":
			return nil, nil
		}
		return nil, errors.New("no such host")
	}
	for _, c := range []struct {
		name, endpoint string
		warns          bool
	}{
		{"api.example", "https://192.0.2.44:443", false},
		{"nowhere.example", "https://192.0.2.7:6443", true},
		{"empty.example", "https://192.0.2.7:6443", true},
		{"", "https://192.0.2.7:6443", false},
	} {
		r := l.must(201, "POST", apiConfigPath, strings.Replace(wholeAPIConfig, `"port"`, `"apiServerFqdn":"`+c.name+`","port"`, 1))
		if w := r.header.Get("Warning"); (w != "") != c.warns || c.warns && !strings.Contains(w, c.name) {
			t.Errorf("%q: Warning %q", c.name, w)
		}
		if got := l.db.Snapshot().APIConfig().Endpoint(); got != c.endpoint {
			t.Errorf("%q: endpoint %s, want %s", c.name, got, c.endpoint)
		}
		l.must(204, "DELETE", apiConfigPath+"/"+c.endpoint, "")
		l.must(404, "GET", apiConfigPath, "")
	}
}

// TestOneAPIConfigOnly: of many that are posted at the same time one is stored.
func TestOneAPIConfigOnly(t *testing.T) {
	l := newLab(t)
	var mu sync.Mutex
	created := 0
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			switch r := l.call("POST", apiConfigPath, httpAPIConfig("192.0.2.7", 1+i)); r.status {
			case 201:
				mu.Lock()
				created++
				mu.Unlock()
			case 400:
				if !strings.Contains(string(r.body), "KubeVirt API config should be unique") {
					t.Errorf("refused with %s", r.body)
				}
			default:
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	wg.Wait()
	if n := l.db.Snapshot().Len(model.KindAPIConfig); created != 1 || n != 1 {
		t.Errorf("%d were created, %d are stored", created, n)
	}
}

// TestAPIConfigWithoutStore: the store's faults are told as everywhere.
func TestAPIConfigWithoutStore(t *testing.T) {
	l := newLab(t, onFaulty(&faultyStore{err: store.ErrUnavailable}))
	l.must(503, "POST", apiConfigPath, wholeAPIConfig)
	l.must(503, "DELETE", apiConfigPath+"/http://x:1", "")
}

// TestHealthzTellsWhetherTheAPICanBeUsed (row E20 of the quirks).
func TestHealthzTellsWhetherTheAPICanBeUsed(t *testing.T) {
	l := newLab(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := true
	t.Cleanup(func() {
		if open {
			_ = listener.Close()
		}
	})
	want := func(why, value string) {
		t.Helper()
		if r := l.must(http.StatusOK, "GET", nodesPath+"/healthz", ""); string(r.body) != `{"apiConfig":"`+value+`"}` {
			t.Errorf("%s: %s, want %s", why, r.body, value)
		}
	}
	want("no configuration", "error")
	l.must(201, "POST", apiConfigPath, httpAPIConfig("127.0.0.1", listener.Addr().(*net.TCPAddr).Port))
	want("no nodes", "ok")
	l.must(201, "POST", nodesPath, nodeBody(worker1, worker2))
	want("all nodes are INIT", "error")
	l.setNodeState("w1", model.NodeComplete)
	want("one node is COMPLETE", "ok")
	open = false
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	want("the API server is gone", "error")
}
