package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// NeedRoot fails a test that isn't run by root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and switches, which needs root: run it as root")
	}
}

// Context is a context that ends with the test or after limit.
func Context(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// Lab is an empty lab that ends with the test.
func Lab(t testing.TB) *lab.Lab {
	t.Helper()
	l, err := lab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Eventually calls check again and again until it returns nil, and fails the test
// with its last error when that takes longer than limit.
func Eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Options says how a rig's server is run.
type Options struct {
	AuditInterval, FullAuditInterval time.Duration
	Args                             []string
}

// Rig is a running server with a relay in front of it.
type Rig struct {
	*server.Server
	Relay *relay.Relay
	t     testing.TB
}

// Start builds and starts a server with its data in dir, and a relay to it. When
// the test ends the server is stopped and its log is checked; if the test has
// failed the log is shown.
func Start(t testing.TB, ctx context.Context, dir string, o Options) *Rig {
	t.Helper()
	binary, err := server.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if o.AuditInterval == 0 {
		o.AuditInterval = 2 * time.Second
	}
	if o.FullAuditInterval == 0 {
		o.FullAuditInterval = 5 * time.Second
	}
	s, err := server.New(server.Config{
		Binary: binary, Dir: filepath.Join(dir, "server"), Name: "n1",
		AuditInterval: o.AuditInterval, FullAuditInterval: o.FullAuditInterval, Args: o.Args,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Rig{Server: s, Relay: relay.New(s.OpenFlow), t: t}
	t.Cleanup(r.end)
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Rig) end() {
	r.checkRecompute()
	if err := r.Stop(); err != nil {
		r.t.Error(err)
	}
	r.Relay.Close()
	if err := r.CheckLog(); err != nil {
		r.t.Error(err)
	}
	if r.t.Failed() {
		r.t.Logf("end of the server's log:\n%s", r.LogTail())
	}
}

// RecomputeMetric counts what a full recompute found different from the
// incremental result. It has to be 0.
const RecomputeMetric = "kvnet_recompute_differences"

func (r *Rig) checkRecompute() {
	if !r.Running() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	value, ok, err := r.Metric(ctx, RecomputeMetric)
	if err != nil || !ok || value != 0 {
		r.t.Errorf("metric %s: %v, exists: %v, %v; want 0", RecomputeMetric, value, ok, err)
	}
}

// Must writes by REST.
func (r *Rig) Must(ctx context.Context, method, path string, body any) {
	r.t.Helper()
	if err := r.Write(ctx, method, path, body); err != nil {
		r.t.Fatal(err)
	}
}

// Flat is the reference lab with a server.
type Flat struct {
	*lab.Flat
	*Rig
}

// StartFlat builds the reference lab, starts a server, connects the switches and
// creates the nodes. It returns when all nodes are COMPLETE.
func StartFlat(t testing.TB, ctx context.Context, c lab.FlatConfig, o Options) *Flat {
	t.Helper()
	NeedRoot(t)
	l, err := lab.NewFlat(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &Flat{Flat: l, Rig: Start(t, ctx, l.Dir, o)}
	for _, b := range l.Controlled {
		if _, err := f.Relay.Listen(b.Name(), "unix", b.Socket); err != nil {
			t.Fatal(err)
		}
	}
	f.Must(ctx, http.MethodPost, server.NodePath, l.NodeBody())
	f.WaitComplete(ctx)
	return f
}

// In is the same lab for a subtest, whose faults are then its own.
func (f *Flat) In(t testing.TB) *Flat {
	rig := *f.Rig
	rig.t = t
	return &Flat{Flat: f.Flat, Rig: &rig}
}

// WaitComplete waits until all nodes are COMPLETE.
func (f *Flat) WaitComplete(ctx context.Context) {
	f.t.Helper()
	for _, node := range slices.Concat(f.Gateways, f.Workers) {
		Eventually(f.t, 15*time.Second, node+" COMPLETE", func() error {
			state, err := f.NodeState(ctx, node)
			if err == nil && state != "COMPLETE" {
				err = fmt.Errorf("it is %s", state)
			}
			return err
		})
	}
}
