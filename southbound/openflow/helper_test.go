package openflow_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/openflow"
)

// recorder is an Events that keeps what it is told.
type recorder struct {
	mu      sync.Mutex
	changed chan struct{}
	ups     []*openflow.Session
	downs   map[*openflow.Session]error
	packets []openflow.PacketIn
	removed []openflow.FlowRemoved
	stale   []uint64
}

func newRecorder() *recorder {
	return &recorder{changed: make(chan struct{}), downs: map[*openflow.Session]error{}}
}

func (r *recorder) record(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) MasterUp(s *openflow.Session) { r.record(func() { r.ups = append(r.ups, s) }) }
func (r *recorder) SessionDown(s *openflow.Session, err error) {
	r.record(func() { r.downs[s] = err })
}
func (r *recorder) PacketIn(_ *openflow.Session, p openflow.PacketIn) {
	r.record(func() { r.packets = append(r.packets, p) })
}
func (r *recorder) FlowRemoved(_ *openflow.Session, f openflow.FlowRemoved) {
	r.record(func() { r.removed = append(r.removed, f) })
}
func (r *recorder) Stale(_ *openflow.Session, g uint64) {
	r.record(func() { r.stale = append(r.stale, g) })
}

// wait waits until ok, which is called with the recorder locked.
func (r *recorder) wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		done, changed := ok(), r.changed
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// master waits for the newest session that is up and hasn't ended.
func (r *recorder) master(t testing.TB, d model.DPID) *openflow.Session {
	t.Helper()
	var s *openflow.Session
	r.wait(t, "switch "+d.String()+" makes this server its master", func() bool {
		for _, up := range slices.Backward(r.ups) {
			if up.DPID() == d {
				s = up
				break
			}
		}
		if s == nil {
			return false
		}
		_, down := r.downs[s]
		return !down
	})
	return s
}

// controller is a Server with what it reports to.
type controller struct {
	*openflow.Server
	*recorder
	db   *state.DB
	addr net.Addr
}

// start runs a Server on loopback until the test ends.
func start(t testing.TB, change func(*openflow.Config)) *controller {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, ln, change)
}

func startOn(t testing.TB, ln net.Listener, change func(*openflow.Config)) *controller {
	t.Helper()
	c := &controller{recorder: newRecorder(), db: state.New(), addr: ln.Addr()}
	cfg := openflow.Config{Observer: c.db, Events: c.recorder}
	if os.Getenv("KVNET_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if change != nil {
		change(&cfg)
	}
	c.Server = openflow.NewServer(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the server doesn't end")
		}
	})
	return c
}

// until is a context for one step of a test.
func until(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls for what no event tells.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
