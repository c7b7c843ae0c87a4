package gossip

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// disk keeps a Record over the lives of a server.
type disk struct {
	mu  sync.Mutex
	rec Record
	err error
}

func (d *disk) Load() (Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rec, nil
}

func (d *disk) Save(r Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.rec = r
	}
	return d.err
}

// founding is a server on its way into a cluster.
type founding struct {
	*server
	plan Plan
	err  error
	done chan struct{}
}

// form starts the server n<i> and lets it form a cluster.
func (w *world) form(i, expect int, d *disk, died func(string) bool, seeds ...int) *founding {
	w.t.Helper()
	f := &founding{server: w.start(i, join(seeds...), func(c *Config) { c.Meta.Expect = expect }), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	go func() {
		defer close(f.done)
		f.plan, f.err = f.Form(ctx, FormConfig{
			Expect: expect, Records: d, died: died,
			Self: StoreMember{Name: f.Name(), PeerURL: "http://" + f.Name() + ":2380"},
		})
		if errors.Is(f.err, errDied) {
			f.kill()
		}
	}()
	return f
}

// founds waits until each of fs has the same plan and returns it.
func founds(t *testing.T, fs ...*founding) Plan {
	t.Helper()
	for _, f := range fs {
		select {
		case <-f.done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s is in no cluster:\n%s", f.Name(), f.logs)
		}
		if f.err != nil {
			t.Fatalf("%s: %v", f.Name(), f.err)
		}
		if f.plan.ClusterID != fs[0].plan.ClusterID || !slices.Equal(f.plan.Members, fs[0].plan.Members) {
			t.Fatalf("%s follows %v and %s %v", f.Name(), f.plan, fs[0].Name(), fs[0].plan)
		}
		if f.ClusterID() != f.plan.ClusterID {
			t.Errorf("%s belongs to %q", f.Name(), f.ClusterID())
		}
	}
	return fs[0].plan
}

// nothing fails the test if one of fs is done within d.
func nothing(t *testing.T, d time.Duration, fs ...*founding) {
	t.Helper()
	limit := time.After(d)
	for _, f := range fs {
		select {
		case <-f.done:
			t.Fatalf("%s is in the cluster %v, %v", f.Name(), f.plan, f.err)
		case <-limit:
			return
		}
	}
	<-limit
}

func TestThreeFound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ds [4]disk
		a, b := w.form(1, 3, &ds[1], nil, 1, 2, 3), w.form(2, 3, &ds[2], nil, 1, 2, 3)
		nothing(t, 10*time.Second, a, b)
		a.says("2 of 3 servers are here: n1, n2")
		c := w.form(3, 3, &ds[3], nil, 1, 2, 3)
		p := founds(t, a, b, c)
		if got := p.names(); !slices.Equal(got, []string{"n1", "n2", "n3"}) || len(p.ClusterID) != 32 {
			t.Errorf("the plan is %v", p)
		}
		// A fourth one only finds out whom to ask: those that it knows to be in.
		d := w.form(4, 3, &disk{}, nil, 1)
		<-d.done
		if d.err != nil || !d.plan.Joining || d.plan.ClusterID != p.ClusterID ||
			len(d.plan.Ask) == 0 || slices.ContainsFunc(d.plan.Ask, func(n string) bool { return !slices.Contains(p.names(), n) }) {
			t.Errorf("the fourth has %+v, %v", d.plan, d.err)
		}
		// A server that starts again is in the cluster without asking anybody.
		again := w.form(5, 3, &disk{rec: Record{Plan: &p, Committed: true}}, nil)
		founds(t, again)
	})
}

func TestFourDontFoundThree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var fs []*founding
		for i := 1; i <= 4; i++ {
			s := w.start(i, join(1), func(c *Config) { c.Meta.Expect = 3 })
			fs = append(fs, &founding{server: s})
		}
		for _, f := range fs {
			f.sees("n1 n2 n3 n4")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for _, f := range fs {
			wg.Go(func() {
				_, err := f.Form(ctx, FormConfig{Expect: 3, Records: &disk{}, Self: StoreMember{f.Name(), "http://" + f.Name()}})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", f.Name(), err)
				}
			})
		}
		wg.Wait()
		for _, f := range fs {
			f.says("4 servers are here and 3 are expected")
		}
	})
}

func TestNoFounding(t *testing.T) {
	tests := map[string]struct {
		change func(c *Config)
		says   string
	}{
		"data":      {func(c *Config) { c.Meta.HasData = true }, "has data already"},
		"disagree":  {func(c *Config) { c.Meta.Expect = 5 }, "expects 5 servers, this one expects 2"},
		"no expect": {func(c *Config) { c.Meta.Expect = 0 }, "1 of 2 servers are here"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.start(2, tt.change)
				a := w.form(1, 2, &disk{}, nil, 2)
				nothing(t, 10*time.Second, a)
				a.says(tt.says)
			})
		})
	}
}

// TestOnlyJoining: without a number of servers to expect none is founded, and a
// cluster that comes is joined.
func TestOnlyJoining(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.form(1, 0, &disk{}, nil, 2)
		nothing(t, 10*time.Second, a)
		w.start(2, cluster("c1"))
		<-a.done
		if a.err != nil || !a.plan.Joining || a.plan.ClusterID != "c1" || a.ClusterID() != "" {
			t.Errorf("%+v, %v", a.plan, a.err)
		}
	})
}

// TestFounderDies ends the founder at each step. What was promised is founded
// when it comes back, and nobody is in a cluster before.
func TestFounderDies(t *testing.T) {
	for _, at := range []string{"planned", "promised by n2", "promised by n3", "committed"} {
		for _, lost := range []bool{false, true} {
			t.Run(at+map[bool]string{true: ", disk lost"}[lost], func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var ds [4]disk
					a := w.form(1, 3, &ds[1], func(s string) bool { return s == at }, 1, 2, 3)
					b, c := w.form(2, 3, &ds[2], nil, 1), w.form(3, 3, &ds[3], nil, 1)
					<-a.done
					if !errors.Is(a.err, errDied) {
						t.Fatal(a.err)
					}
					made := ds[1].rec.Plan.ClusterID
					nothing(t, 10*time.Second, b, c)
					b.sees("n1x n2 n3")
					if lost {
						ds[1] = disk{}
					}
					a = w.form(1, 3, &ds[1], nil, 1, 2, 3)
					p := founds(t, a, b, c)
					if forgotten := lost && at == "planned"; (p.ClusterID == made) == forgotten {
						t.Errorf("the cluster is %q, planned was %q", p.ClusterID, made)
					}
					for i := 1; i <= 3; i++ {
						if !ds[i].rec.Committed {
							t.Errorf("n%d remembers %+v", i, ds[i].rec)
						}
					}
				})
			})
		}
	}
}

// TestPromiserDies: a server that has promised and comes back commits what the
// others have committed meanwhile, whether they are there or not.
func TestPromiserDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ds [4]disk
		var c *founding
		ready := make(chan struct{})
		a := w.form(1, 3, &ds[1], func(s string) bool {
			if s == "promised by n3" {
				<-ready
				c.kill()
			}
			return false
		}, 1, 2, 3)
		b := w.form(2, 3, &ds[2], nil, 1)
		c = w.form(3, 3, &ds[3], nil, 1)
		close(ready)
		founds(t, a, b)
		if ds[3].rec.Plan == nil || ds[3].rec.Committed {
			t.Fatalf("n3 remembers %+v", ds[3].rec)
		}
		c = w.form(3, 3, &ds[3], nil, 1)
		founds(t, a, b, c)
	})
}

// TestOtherSet: a plan for servers that never came together is withdrawn for
// those that do.
func TestOtherSet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ds [5]disk
		a := w.form(2, 3, &ds[2], func(s string) bool { return s == "promised by n3" }, 3)
		b, c := w.form(3, 3, &ds[3], nil), w.form(4, 3, &ds[4], nil, 3)
		<-a.done
		if ds[3].rec.Plan == nil {
			t.Fatal("n3 has promised nothing")
		}
		c.kill() // for ever; n1 comes instead
		d := w.form(1, 3, &ds[1], nil, 3)
		d.sees("n1 n2x n3 n4x")
		a = w.form(2, 3, &ds[2], nil, 3)
		p := founds(t, d, a, b)
		if !slices.Equal(p.names(), []string{"n1", "n2", "n3"}) {
			t.Errorf("the plan is %v", p)
		}
	})
}

// TestForgottenPlan: a founder that has lost its disk can't know whether a plan
// was committed by servers that are not here.
func TestForgottenPlan(t *testing.T) {
	old := &Plan{ClusterID: "old", Members: []StoreMember{{"n1", "http://n1:2380"}, {"n2", "http://n2:2380"}, {"n9", "http://n9:2380"}}}
	inWorld(t, func(t *testing.T, w *world) {
		d := &disk{rec: Record{Plan: old}}
		a, b, c := w.form(1, 3, &disk{}, nil), w.form(2, 3, d, nil, 1), w.form(3, 3, &disk{}, nil, 1)
		nothing(t, 10*time.Second, a, b, c)
		a.says("start these servers, or remove the plan there")
	})
}

func TestFullDiskPromisesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		full := &disk{err: errors.New("no space left on device")}
		a, b := w.form(1, 2, &disk{}, nil), w.form(2, 2, full, nil, 1)
		nothing(t, 10*time.Second, a, b)
		a.says("no space left on device")
		full.mu.Lock()
		full.err = nil
		full.mu.Unlock()
		founds(t, a, b)
	})
}

func TestRecordFile(t *testing.T) {
	f := RecordFile(t.TempDir() + "/plan.json")
	if r, err := f.Load(); err != nil || r.Plan != nil {
		t.Fatal(r, err)
	}
	want := Record{Plan: &Plan{ClusterID: "c", Members: []StoreMember{{"a", "http://a:1"}}}, Committed: true, Withdrawn: []string{"x"}}
	if err := f.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Load()
	if err != nil || !got.Committed || got.Plan.ClusterID != "c" || !slices.Equal(got.Plan.Members, want.Plan.Members) || !slices.Equal(got.Withdrawn, want.Withdrawn) {
		t.Fatal(got, err)
	}
	if err := writeFile(string(f), []byte(`{"plan":{"clusterID":"c"}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "0 members") {
		t.Fatal(err)
	}
}
