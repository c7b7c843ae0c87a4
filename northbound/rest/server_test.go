package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvnet/cluster/store"
	"kvnet/model/state"
)

// syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestStoreFaults: what goes wrong in the store becomes a status that says so.
func TestStoreFaults(t *testing.T) {
	st := &faultyStore{}
	l := newLab(t, onFaulty(st))
	for _, c := range []struct {
		err  error
		want int
	}{
		{store.ErrTooLarge, 413},
		{store.ErrNoSpace, 507},
		{store.ErrUnavailable, 503},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, ErrNotOpen), 503},
		{&store.BridgeTakenError{Bridge: "of:1", Host: "h"}, 400},
		{errors.New("boom"), 500},
	} {
		st.err = fmt.Errorf("write: %w", c.err)
		for _, call := range []struct{ method, path, body string }{
			{"POST", networksPath, networkBody("n")},
			{"PUT", networksPath + "/n", networkBody("n")},
			{"DELETE", networksPath + "/n", ""},
			{"POST", routersPath, `{"name":"r","mac":"fe:00:00:00:00:01"}`},
			{"DELETE", routersPath + "/r", ""},
			{"POST", nodesPath, nodeBody(worker1)},
			{"DELETE", nodesPath + "/w1", ""},
			{"GET", nodesPath + "/init/w1", ""},
		} {
			r := l.call(call.method, call.path, call.body)
			if errors.Is(c.err, ErrNotOpen) != bytes.Contains(r.body, []byte("not open yet; nothing was stored")) {
				t.Errorf("%v: %s %s: %s", c.err, call.method, call.path, r.body)
			}
			if r.status != c.want || !bytes.HasPrefix(r.body, fmt.Appendf(nil, `{"code":%d,"message":"`, c.want)) || bytes.Contains(r.body, []byte("boom")) {
				t.Errorf("%v: %s %s: %d %s, want %d", c.err, call.method, call.path, r.status, r.body, c.want)
			}
		}
	}
}

// TestNodesConflict: a plan that others keep overtaking ends, with 409.
func TestNodesConflict(t *testing.T) {
	st := &faultyStore{err: fmt.Errorf("write: %w", store.ErrConflict)}
	l := newLab(t, onFaulty(st))
	done := make(chan *reply, 1)
	go func() { done <- l.call("POST", nodesPath, nodeBody(worker1)) }()
	for rev := int64(2); ; rev++ { // somebody else writes and writes
		select {
		case r := <-done:
			if r.status != 409 {
				t.Errorf("%d %s, want 409", r.status, r.body)
			}
			return
		default:
			if err := l.db.Apply(rev, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLateOwnWriteIsASuccessWithWarning: the write has happened, so the answer
// says so even if this server can't show it yet.
func TestLateOwnWriteIsASuccessWithWarning(t *testing.T) {
	st := &faultyStore{revision: 7}
	l := newLab(t, onFaulty(st), func(c *Config) { c.Limits.OwnWrite = 10 * time.Millisecond })
	r := l.must(201, "POST", networksPath, networkBody("n"))
	if w := r.header.Get("Warning"); !strings.HasPrefix(w, `199 kvnet "`) {
		t.Errorf("Warning %q", w)
	}
	if err := l.db.Apply(7, nil); err != nil {
		t.Fatal(err)
	}
	r = l.must(201, "POST", networksPath, networkBody("n"))
	if w := r.header.Get("Warning"); w != "" {
		t.Errorf("Warning %q though the revision is there", w)
	}
}

func TestReadiness(t *testing.T) {
	st := &faultyStore{}
	db := state.New()
	l := newLab(t, func(c *Config) { c.Store, c.DB = st, db })
	get := func(path string, want int) {
		t.Helper()
		if r := l.send("GET", path, map[string]string{"Authorization": adminAuth}, nil); r.status != want || r.header.Get("Content-Type") != jsonType {
			t.Errorf("GET %s: %d %s, want %d", path, r.status, r.body, want)
		}
	}
	get("/livez", 200)
	get("/readyz", 503)
	get(networksPath, 503) // not known is not empty
	get(networksPath+"/exist/n", 503)
	get("/onos/v1/cluster", 200)
	if err := db.Replace(1, nil); err != nil {
		t.Fatal(err)
	}
	get("/readyz", 200)
	get(networksPath, 200)
	st.err = store.ErrUnavailable
	get("/readyz", 503)
	get("/livez", 200)
	get(networksPath, 200)
}

// TestEveryCallAnswersHeadAndOptions goes through the whole table.
func TestEveryCallAnswersHeadAndOptions(t *testing.T) {
	l := newLab(t)
	methods := map[string][]string{}
	for _, r := range l.server.table() {
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, known := range methods {
		real := path
		for _, p := range []string{":id", ":key", ":hostname", ":name"} {
			real = strings.ReplaceAll(real, p, "x")
		}
		r := l.call("OPTIONS", real, "")
		if r.status != 200 || len(r.body) != 0 {
			t.Errorf("OPTIONS %s: %d %s", real, r.status, r.body)
		}
		want := append([]string{"OPTIONS"}, known...)
		if slices.Contains(known, "GET") {
			want = append(want, "HEAD")
			head := l.call("HEAD", real, "")
			get := head
			if path != ownPath+"/events" { // an answer without end
				get = l.call("GET", real, "")
			}
			if head.status != get.status || len(head.body) != 0 || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
				t.Errorf("HEAD %s: %d %v, GET: %d %v", real, head.status, head.header, get.status, get.header)
			}
		}
		slices.Sort(want)
		if got := r.header.Get("Allow"); got != strings.Join(want, ", ") {
			t.Errorf("OPTIONS %s: Allow %q, want %q", real, got, strings.Join(want, ", "))
		}
	}
}

// TestIDsOfAnyCharacter: whatever an id is made of, Location leads to its object.
func TestIDsOfAnyCharacter(t *testing.T) {
	l := newLab(t)
	for _, id := range []string{"a/b", "../x", "..", ".", "http://x/y", "a b", "a%b", "a%2Fb", "a+b", "a?b=c", "a#b", "a;b,c", "ä漢😀", "exist", "a\nb",
		"all", "a/", "/", "'\"<>&", `\`, "network", "%", strings.Repeat("x", 2000)} {
		r := l.must(201, "POST", networksPath, networkBody(id))
		loc := r.header.Get("Location")
		path, ok := strings.CutPrefix(loc, "http://"+l.server.Addr().String())
		if !ok {
			t.Errorf("%q: Location %q", id, loc)
			continue
		}
		got := l.call("GET", path, "")
		if n := parseJSON(got.body); got.status != 200 || n.(map[string]any)["networkId"] != id {
			t.Errorf("%q: GET %s: %d %s", id, path, got.status, got.body)
		}
		l.must(200, "PUT", path, networkBody(id))
		l.must(204, "DELETE", path, "")
	}
	l.must(400, "GET", networksPath+"/%ff", "")
	l.must(400, "DELETE", networksPath+"/%00", "")
}

func TestTrailingSlashAndNeedlessEscapes(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", networksPath+"/", networkBody("n"))
	l.must(200, "GET", networksPath+"/n/", "")
	l.must(200, "GET", "/onos/kubevirtnetworking/netw%6Frk/%6e", "")
	l.must(404, "GET", networksPath+"//", "")
	l.must(404, "GET", "//onos/kubevirtnetworking/network", "")
	l.must(404, "GET", networksPath+"/n//", "")
}

func TestPortsAreKnownByMACInAnyCase(t *testing.T) {
	l := newLab(t)
	ports := networkingPath + "/port"
	l.must(201, "POST", ports, `{"vmName":"v","networkId":"n","macAddress":"FE:00:00:00:00:0a","securityGroups":["b","a","b"]}`)
	l.must(409, "POST", ports, `{"vmName":"v","networkId":"n","macAddress":"fe:00:00:00:00:0A"}`)
	const want = `{"vmName":"v","networkId":"n","macAddress":"FE:00:00:00:00:0A","securityGroups":["a","b"]}`
	for _, key := range []string{"fe:00:00:00:00:0a", "FE:00:00:00:00:0A", "fe%3A00:00:00:00:0A"} {
		if r := l.must(200, "GET", ports+"/"+key, ""); string(r.body) != want {
			t.Errorf("GET %s: %s", key, r.body)
		}
	}
	if r := l.must(200, "GET", ports, ""); string(r.body) != `{"ports":[`+want+`]}` {
		t.Errorf("list %s", r.body)
	}
	if r := l.must(200, "GET", mm5Path+"/instance", ""); string(r.body) != `{"instances":[{"name":"v","ports":[`+want+`]}]}` {
		t.Errorf("instances %s", r.body)
	}
	l.must(404, "GET", ports+"/nonsense", "")
	l.must(400, "PUT", ports+"/fe:00:00:00:00:0b", want)
	l.must(204, "DELETE", ports+"/FE:00:00:00:00:0A", "")
	l.must(404, "PUT", ports+"/fe:00:00:00:00:0a", want)
}

func TestNetworkWarnings(t *testing.T) {
	l := newLab(t)
	if r := l.must(201, "POST", networksPath, networkBody("good")); r.header.Get("Warning") != "" {
		t.Errorf("a good network: Warning %q", r.header.Get("Warning"))
	}
	odd := strings.NewReplacer(`"mtu":1500`, `"mtu":0`, `"10.0.0.0/24"`, `"10.9.0.0/24"`).Replace(networkBody("odd"))
	if got := l.must(201, "POST", networksPath, odd).header.Values("Warning"); len(got) != 3 {
		t.Errorf("an odd network: %q", got)
	}
}

// TestPanicIsAnAnswer: a fault of kvnet's own ends one request, not the server.
func TestPanicIsAnAnswer(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Inspector = broken{} })
	if r := l.must(500, "GET", ownPath+"/switches", ""); !bytes.HasPrefix(r.body, []byte(`{"code":500,`)) {
		t.Errorf("body %s", r.body)
	}
	if n := len(l.server.readers); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
	l.must(200, "GET", networksPath, "")
}

type broken struct{ quiet }

func (broken) Switches() []SwitchView { panic("out of order") }

func TestServeEndsWithItsContext(t *testing.T) {
	st := &faultyStore{block: make(chan struct{})}
	s := newBareServer(t, st)
	s.limits.Shutdown = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	// A connection that sends nothing, and a request that is being worked on.
	idle, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	busy, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := fmt.Fprintf(busy, "DELETE %s/n HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", networksPath, adminAuth); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request is being worked on", func() bool { return len(s.writers) == 1 })
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve goes on")
	}
	close(st.block)
	eventually(t, "the request ends", func() bool { return len(s.writers) == 0 })
	if c, err := net.Dial("tcp", s.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the port is still open")
	}
}

func TestNewRefusesWhatCantWork(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := Config{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", Store: &faultyStore{}, DB: emptyState(), Inspector: quiet{},
		Logger: slog.New(slog.DiscardHandler)}
	for what, change := range map[string]func(*Config){
		"a taken port":             func(c *Config) { c.Listen = taken.Addr().String() },
		"a taken port for metrics": func(c *Config) { c.MetricsListen = taken.Addr().String() },
		"no store":                 func(c *Config) { c.Store = nil },
		"no state":                 func(c *Config) { c.DB = nil },
		"no inspector":             func(c *Config) { c.Inspector = nil },
		"all addresses":            func(c *Config) { c.Listen = "0.0.0.0:0" },
	} {
		c := good
		change(&c)
		if s, err := New(c); err == nil {
			_ = s.Close()
			t.Errorf("%s: no error", what)
		}
	}
}
