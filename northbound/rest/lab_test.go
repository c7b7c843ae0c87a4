package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

const (
	adminAuth  = "Basic b25vczpyb2Nrcw==" // onos:rocks
	viewerAuth = "Basic Z3Vlc3Q6Z3Vlc3Q=" // guest:guest
)

// engine is one real store for all tests; each test starts with it empty.
var engine struct {
	once  sync.Once
	dir   string
	db    *state.DB
	store *store.Store
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if engine.store != nil {
		if err := engine.store.Close(); err != nil {
			slog.Error("close the store", "error", err)
			code = 1
		}
	}
	_ = os.RemoveAll(engine.dir)
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			slog.Error("goroutines are left", "error", err)
			code = 1
		}
	}
	os.Exit(code)
}

// realStore is the store, emptied.
func realStore(t testing.TB) (*store.Store, *state.DB) {
	t.Helper()
	engine.once.Do(func() {
		if engine.dir, engine.err = os.MkdirTemp("", "kvnet-rest"); engine.err != nil {
			return
		}
		engine.db = state.New()
		engine.store, engine.err = store.Open(context.Background(), store.Config{
			Dir: engine.dir, Listen: "127.0.0.1:0", MinFree: -1, Logger: slog.New(slog.DiscardHandler),
		}, engine.db)
	})
	if engine.err != nil {
		t.Fatalf("open the store: %v", engine.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i := len(model.WantedKinds) - 1; i >= 0; i-- {
		kind := model.WantedKinds[i]
		for _, key := range engine.db.Snapshot().Keys(kind) {
			rev, err := engine.store.Delete(ctx, kind, key)
			if err != nil {
				t.Fatalf("empty the store: delete %s %q: %v", kind, key, err)
			}
			if err := engine.db.WaitRevision(ctx, rev); err != nil {
				t.Fatalf("empty the store: %v", err)
			}
		}
	}
	return engine.store, engine.db
}

// quiet is an Inspector that has nothing to tell.
type quiet struct{}

func (quiet) Flows(string, string) (FlowsReport, error) { return FlowsReport{}, nil }
func (quiet) Switches() []SwitchView                    { return nil }
func (quiet) Cluster() []MemberView                     { return nil }

// lab is a server under test.
type lab struct {
	t      testing.TB
	server *Server
	client *http.Client
	db     *state.DB
	store  Store
}

// newLab starts a server on the real store.
func newLab(t testing.TB, change ...func(*Config)) *lab {
	t.Helper()
	st, db := realStore(t)
	c := Config{
		Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", Store: st, DB: db, Inspector: quiet{},
		Logger: slog.New(slog.DiscardHandler), Version: "test",
	}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatalf("make the server: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	client := &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return &lab{t, s, client, c.DB, c.Store}
}

// send sends a request exactly as given: the path as it stands, and no header
// but those.
func (l *lab) send(method, path string, headers map[string]string, body *string) *reply {
	l.t.Helper()
	var r io.Reader
	if body != nil {
		r = strings.NewReader(*body)
	}
	req, err := http.NewRequest(method, "http://"+l.server.Addr().String(), r)
	if err != nil {
		l.t.Fatal(err)
	}
	rawPath, query, _ := strings.Cut(path, "?")
	req.URL = &url.URL{Scheme: "http", Host: l.server.Addr().String(), Opaque: rawPath, RawQuery: query}
	for k, v := range headers {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		l.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return &reply{resp.StatusCode, resp.Header, b}
}

// call sends a request as the admin; a body is JSON.
func (l *lab) call(method, path, body string) *reply {
	l.t.Helper()
	h := map[string]string{"Authorization": adminAuth}
	if body == "" {
		return l.send(method, path, h, nil)
	}
	h["Content-Type"] = jsonType
	return l.send(method, path, h, &body)
}

// must sends a request as the admin and wants the status.
func (l *lab) must(status int, method, path, body string) *reply {
	l.t.Helper()
	r := l.call(method, path, body)
	if r.status != status {
		l.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
	}
	return r
}
