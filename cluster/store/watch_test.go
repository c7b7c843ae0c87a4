package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/model"
	"kvnet/model/state"
)

// recorder notes what the watch brings into the tables.
type recorder struct {
	tables
	mu       sync.Mutex
	applied  []int64
	events   map[int64][]state.Event
	replaced int
	refuse   error // of the next Apply
}

func (r *recorder) Apply(rev int64, events []state.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refuse; err != nil {
		r.refuse = nil
		return err
	}
	r.applied = append(r.applied, rev)
	r.events[rev] = append(r.events[rev], events...)
	return r.tables.Apply(rev, events)
}

func (r *recorder) Replace(rev int64, objects []model.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replaced++
	return r.tables.Replace(rev, objects)
}

func (r *recorder) replacements() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaced
}

func record(c *Config) *recorder {
	r := &recorder{events: map[int64][]state.Event{}}
	c.tuning.tables = func(t tables) tables { r.tables = t; return r }
	return r
}

func TestOneRevisionIsOneApply(t *testing.T) {
	c := config(t)
	r := record(&c)
	f := open(t, c)
	first := f.db.Snapshot().Revision()
	var mu sync.Mutex
	want := map[int64]int{} // objects in the transaction of a revision
	var writers sync.WaitGroup
	for g := range 8 {
		writers.Go(func() {
			for i := range 50 {
				var writes []Write
				for k := range 1 + i%4 {
					writes = append(writes, Write{New: network(fmt.Sprintf("%d-%d-%d", g, i, k))})
				}
				rev, err := f.Put(ctx(t), writes)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want[rev] = len(writes)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	last := slices.Max(slices.Collect(maps.Keys(want)))
	f.at(last, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, rev := range r.applied {
		if rev != first+1+int64(i) {
			t.Fatalf("revision %d is the application %d after %d: one is missing, twice or in disorder", rev, i, first)
		}
		if len(r.events[rev]) != want[rev] {
			t.Fatalf("revision %d: %d events, %d objects written", rev, len(r.events[rev]), want[rev])
		}
	}
}

func TestNoSnapshotShowsHalfATransaction(t *testing.T) {
	f := open(t, config(t))
	s := f.at(f.Put(ctx(t), []Write{{New: network("a")}, {New: network("b")}}))
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		var rev int64
		for {
			s := f.db.Snapshot()
			if a, b := s.Network("a"), s.Network("b"); a.MTU != b.MTU || a.Modified != b.Modified || s.Revision() < rev {
				t.Errorf("a %+v and b %+v at %d after %d", a, b, s.Revision(), rev)
				return
			}
			rev = s.Revision()
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 200 {
		a, b := *s.Network("a"), *s.Network("b")
		a.MTU, b.MTU = int32(i), int32(i)
		s = f.at(f.Put(ctx(t), []Write{{Old: s.Network("a"), New: &a}, {Old: s.Network("b"), New: &b}}))
	}
	close(stop)
	reader.Wait()
}

func TestARevisionOfIndexKeysAloneIsPublished(t *testing.T) {
	f := open(t, config(t))
	resp, err := f.client.Put(ctx(t), refPrefix+"test", "")
	if err != nil {
		t.Fatal(err)
	}
	f.at(resp.Header.Revision, nil)
	rev, err := f.RaiseEpoch(ctx(t), 4_000_000_000)
	if err != nil || rev != 4_000_000_000 {
		t.Fatalf("%d, %v", rev, err)
	}
	now, err := f.Put(ctx(t), nil)
	f.at(now, err)
}

// lose makes the watch start anew and holds it back until release is called.
func lose(t *testing.T, c *Config) (holding func(*fixture), release func()) {
	held := make(chan chan struct{}, 1)
	arrived := make(chan struct{}, 1)
	c.tuning.beforeWatch = func() {
		select {
		case gate := <-held:
			arrived <- struct{}{}
			<-gate
		default:
		}
	}
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return func(f *fixture) {
		t.Helper()
		held <- gate
		f.mu.Lock()
		f.breakWatch()
		f.mu.Unlock()
		select {
		case <-arrived:
		case <-time.After(10 * time.Second):
			t.Fatal("the watch did not start anew")
		}
	}, open
}

func TestAWatchThatWasLostGoesOnWhereItWas(t *testing.T) {
	c := config(t)
	r := record(&c)
	hold, release := lose(t, &c)
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n1")))
	hold(f)
	r2, err := f.Create(ctx(t), network("n2"))
	if err != nil {
		t.Fatal(err)
	}
	r3, err := f.Delete(ctx(t), model.KindNetwork, "n1")
	release()
	if s := f.at(r3, err); s.Network("n1") != nil || s.Network("n2").Created != r2 {
		t.Fatalf("n1 %+v, n2 %+v", s.Network("n1"), s.Network("n2"))
	}
	if r.replacements() != 1 {
		t.Fatal("everything was read anew although nothing was missing")
	}
}

func TestCompactedWhileBehindTheDifferenceBecomesChanges(t *testing.T) {
	c := config(t)
	c.tuning.listLimit = 2 // several pages
	r := record(&c)
	hold, release := lose(t, &c)
	f := open(t, c)
	for _, id := range []string{"kept", "changed", "gone", "reborn"} {
		f.at(f.Create(ctx(t), network(id)))
	}
	sub, _ := f.db.Subscribe()
	defer sub.Close()

	hold(f)
	must := func(rev int64, err error) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	must(f.Update(ctx(t), model.KindNetwork, "changed", func(o model.Object) (model.Object, error) {
		o.(*model.Network).MTU = 9
		return o, nil
	}))
	must(f.Delete(ctx(t), model.KindNetwork, "gone"))
	must(f.Delete(ctx(t), model.KindNetwork, "reborn"))
	must(f.Create(ctx(t), network("reborn")))
	if _, err := f.TakeTerm(ctx(t), "me", "x"); err != nil {
		t.Fatal(err)
	}
	last := must(f.Create(ctx(t), network("new")))
	if _, err := f.client.Compact(ctx(t), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if s := f.db.Snapshot(); s.Revision() >= last || s.Network("kept") == nil || !s.Complete() {
		t.Fatal("the tables are not served while the watch is behind")
	}
	release()

	s := f.at(last, nil)
	if r.replacements() != 2 {
		t.Fatalf("read everything %d times", r.replacements())
	}
	_, changes := sub.Take()
	got := map[string]string{}
	for _, ch := range changes {
		got[ch.Key] = fmt.Sprint(ch.Old != nil, ch.New != nil)
	}
	want := map[string]string{"changed": "true true", "gone": "true false", "reborn": "true true", "new": "false true"}
	if !maps.Equal(got, want) {
		t.Fatalf("changes %v, want %v", got, want)
	}
	if s.Network("changed").MTU != 9 || s.Network("gone") != nil {
		t.Fatal("not as stored")
	}
	if l, _ := f.Leader(); l.Name != "me" {
		t.Fatalf("leader %+v", l)
	}
	// And the watch goes on after it.
	f.at(f.Create(ctx(t), network("after")))
}

func TestTablesThatRefuseARevisionAreReadAnew(t *testing.T) {
	c := config(t)
	r := record(&c)
	f := open(t, c)
	r.mu.Lock()
	r.refuse = errors.New("no")
	r.mu.Unlock()
	if f.at(f.Create(ctx(t), network("n"))).Network("n") == nil {
		t.Fatal("the object is missing")
	}
}

func TestAStoreThatWentBackIsReadAnew(t *testing.T) {
	c := config(t)
	c.tuning.check = 5 * time.Millisecond
	r := record(&c)
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))
	// As if the tables had seen more than the store holds.
	if err := f.db.Apply(1000, []state.Event{{Kind: model.KindNetwork, Key: "x", Object: network("x")}}); err != nil {
		t.Fatal(err)
	}
	rev, err := f.watch(ctx(t), 1000)
	if rev != 1000 || !errors.Is(err, errRewound) {
		t.Fatalf("%d, %v", rev, err)
	}
	if _, err := f.reload(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if s := f.db.Snapshot(); s.Network("x") != nil || s.Network("n") == nil || r.replacements() != 2 {
		t.Fatal("not as stored")
	}
}

func TestAValueThatCannotBeReadChangesNothing(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Create(ctx(t), network("n")))
	key := mustObjectKey(model.KindNetwork, "n")
	for name, value := range map[string]string{
		"newer":   `{"v":2,"o":{"id":"n"}}`,
		"damaged": `{"v":1,"o":{"id":`,
		"another": `{"v":1,"o":{"id":"m"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := f.client.Put(ctx(t), key, value)
			if err != nil {
				t.Fatal(err)
			}
			if n := f.at(resp.Header.Revision, nil).Network("n"); n == nil || n.CIDR == "" {
				t.Fatalf("network %+v", n)
			}
			if len(f.Unreadable()) != 1 {
				t.Fatalf("unreadable: %v", f.Unreadable())
			}
			if _, err := f.reload(ctx(t)); err != nil {
				t.Fatal(err)
			}
			if n := f.db.Snapshot().Network("n"); n == nil || n.CIDR == "" {
				t.Fatalf("network %+v after reading everything anew", n)
			}
		})
	}
	if _, err := f.client.Put(ctx(t), prefix+"network/%zz", "x"); err != nil {
		t.Fatal(err)
	}
	resp, err := f.client.Delete(ctx(t), prefix+"network/%zz")
	if err != nil {
		t.Fatal(err)
	}
	f.at(resp.Header.Revision, nil)
	resp, err = f.client.Delete(ctx(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if n := f.at(resp.Header.Revision, nil).Network("n"); n != nil || len(f.Unreadable()) != 0 {
		t.Fatalf("network %+v, unreadable %v", n, f.Unreadable())
	}
}

func TestUnknownKeysAreLeftAlone(t *testing.T) {
	f := open(t, config(t))
	for _, key := range []string{prefix + "future", prefix + "future/x", statusPrefix + "future/x", prefix + "network", prefix + "status"} {
		resp, err := f.client.Put(ctx(t), key, "x")
		if err != nil {
			t.Fatal(err)
		}
		f.at(resp.Header.Revision, nil)
	}
	if _, err := f.load(ctx(t), true); err != nil {
		t.Fatal(err)
	}
	if len(f.Unreadable()) != 0 {
		t.Fatalf("unreadable: %v", f.Unreadable())
	}
}

func TestTheWatchEndsWithTheStore(t *testing.T) {
	c := config(t)
	db := state.New()
	s, err := Open(ctx(t), c, db)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Create(context.Background(), network("n"))
	wantErr(t, err, ErrUnavailable)
	if !db.Snapshot().Complete() {
		t.Fatal("the tables are gone with the store")
	}
}
