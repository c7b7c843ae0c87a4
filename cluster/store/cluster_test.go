package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvnet/internal/pause"
	"kvnet/model"
	"kvnet/model/state"
)

// planned makes the configurations of a cluster of these names, which has not
// been founded.
func planned(t *testing.T, names ...string) map[string]Config {
	t.Helper()
	id, err := NewClusterID()
	if err != nil {
		t.Fatal(err)
	}
	plan := Cluster{ID: id, Members: map[string]string{}}
	for _, n := range names {
		plan.Members[n] = freeAddr(t)
	}
	cs := map[string]Config{}
	for _, n := range names {
		c := config(t)
		c.Name, c.Listen, c.Cluster = n, plan.Members[n], plan
		cs[n] = c
	}
	return cs
}

// openAll opens stores that need each other.
func openAll(t *testing.T, cs map[string]Config) map[string]*fixture {
	t.Helper()
	fs := map[string]*fixture{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for n, c := range cs {
		all.Go(func() {
			db := state.New()
			s, err := Open(ctx(t), c, db)
			if err != nil {
				t.Errorf("member %s: %v", n, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			fs[n] = &fixture{s, db, t}
		})
	}
	all.Wait()
	t.Cleanup(func() { closeAll(fs) })
	if t.Failed() {
		t.FailNow()
	}
	return fs
}

// closeAll closes stores at the same time: the last ones have no quorum.
func closeAll(fs map[string]*fixture) {
	var all sync.WaitGroup
	for _, f := range fs {
		all.Go(f.close)
	}
	all.Wait()
}

// until waits for what comes by itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for c := ctx(t); !ok(); {
		if !pause.For(c, 5*time.Millisecond) {
			t.Fatalf("never: %s", what)
		}
	}
}

// leader is the name of the member that leads etcd.
func leader(t *testing.T, fs map[string]*fixture) (name string) {
	t.Helper()
	until(t, "one leads", func() bool {
		for n, f := range fs {
			if h, ok := f.Health(); ok && h.Leads {
				name = n
				return true
			}
		}
		return false
	})
	return name
}

func TestThreeServersAreOneStore(t *testing.T) {
	cs := planned(t, "a", "b", "c")
	fs := openAll(t, cs)
	for n, f := range fs {
		rev, err := f.Create(ctx(t), network("of-"+n))
		f.at(rev, err)
	}
	a := fs["a"]
	rev, err := a.Linearizable(ctx(t))
	for n, f := range fs {
		snap := f.at(rev, err)
		for m := range fs {
			if snap.Network("of-"+m) == nil {
				t.Errorf("%s doesn't have what was written at %s", n, m)
			}
		}
		if id, err := f.ClusterID(ctx(t)); err != nil || id != cs[n].Cluster.ID {
			t.Errorf("%s: cluster id %q, %v", n, id, err)
		}
		if h, ok := f.Health(); !ok || !h.Quorum || h.Voters != 3 || h.Leader == "" || h.Learner {
			t.Errorf("%s: health %+v", n, h)
		}
		if len(f.engine.etcd.Clients) != 0 {
			t.Errorf("%s listens for clients", n)
		}
	}
	members, err := a.Members(ctx(t))
	if err != nil || len(members) != 3 || members[1].Name != "b" || members[1].Address != cs["b"].Listen || !members[1].Started {
		t.Errorf("members %+v, %v", members, err)
	}

	// A member that was away is told what it has missed. It needs no plan.
	fs["b"].close()
	missed, err := a.Create(ctx(t), network("missed"))
	a.at(missed, err)
	c := cs["b"]
	c.Cluster = Cluster{ID: "another"}
	wantErr(t, openErr(t, c), ErrOtherCluster)
	c.Cluster = Cluster{}
	b := open(t, c)
	if b.at(missed, nil).Network("missed") == nil {
		t.Error("b has not caught up")
	}
	b.at(b.Create(ctx(t), network("after")))
}

func TestWithoutQuorumNothingIsWrittenAndEverythingRead(t *testing.T) {
	t.Parallel()
	cs := planned(t, "a", "b", "c")
	for n, c := range cs {
		c.OpTimeout, c.LocalAfter = 3*time.Second, time.Millisecond
		cs[n] = c
	}
	fs := openAll(t, cs)
	a := fs["a"]
	rev, err := a.Create(ctx(t), network("n"))
	a.at(rev, err)
	fs["b"].at(rev, nil)
	fs["b"].close()
	fs["c"].close()

	check := func(a *fixture) {
		t.Helper()
		var all sync.WaitGroup
		until(t, "the quorum is known to be lost", func() bool { h, _ := a.Health(); return !h.Quorum })
		for what, f := range map[string]func() error{
			"create": func() error { _, err := a.Create(t.Context(), network("lost")); return err },
			"update": func() error {
				_, err := a.Update(t.Context(), model.KindNetwork, "n", func(o model.Object) (model.Object, error) { return o, nil })
				return err
			},
			"term":         func() error { _, err := a.TakeTerm(t.Context(), "a", "1"); return err },
			"linearizable": func() error { _, err := a.Linearizable(t.Context()); return err },
		} {
			all.Go(func() {
				began := time.Now()
				if err := f(); !errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: error %v", what, err)
				}
				if d := time.Since(began); d > 20*time.Second {
					t.Errorf("%s took %s", what, d)
				}
			})
		}
		all.Wait()
		if a.db.Snapshot().Network("n") == nil {
			t.Error("what was written can't be read")
		}
		if m, err := a.Members(ctx(t)); err != nil || len(m) != 3 {
			t.Errorf("members %v, %v", m, err)
		}
	}
	check(a)
	// Also after a restart.
	a.close()
	a = open(t, cs["a"])
	if !a.db.Snapshot().Complete() {
		t.Error("the tables are not complete")
	}
	check(a)
	b := open(t, cs["b"])
	until(t, "a is in touch again", func() bool { h, _ := a.Health(); return h.Quorum })
	rev, err = a.Create(ctx(t), network("again"))
	a.at(rev, err)
	b.at(rev, nil)
}

func TestOneServerGrowsToThreeUnderWrites(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Name, c.Listen = "a=,", freeAddr(t)
	a := open(t, c)
	id, err := a.ClusterID(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	a.close()
	// As a version without clusters has left it.
	if err := os.Remove(filepath.Join(c.Dir, identityFile)); err != nil {
		t.Fatal(err)
	}
	other := c
	other.Cluster.ID = "another"
	wantErr(t, openErr(t, other), ErrOtherCluster)
	a = open(t, c)
	if stored, err := ReadIdentity(c.Dir); err != nil || stored.Cluster.ID != id || !stored.Started {
		t.Fatalf("identity %+v, %v; the store's id is %s", stored, err, id)
	}

	stop := make(chan struct{})
	written := 0
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := a.Create(ctx(t), network(fmt.Sprint(written))); err != nil {
				t.Errorf("write %d: %v", written, err)
				return
			}
			written++
		}
	})
	fs := map[string]*fixture{"a": a}
	for _, n := range []string{"b", "c"} {
		c := config(t)
		c.Name, c.Listen = n, freeAddr(t)
		if c.Cluster, err = a.AddLearner(ctx(t), n, c.Listen); err != nil {
			t.Fatal(err)
		}
		if again, err := a.AddLearner(ctx(t), n, c.Listen); err != nil || !maps.Equal(again.Members, c.Cluster.Members) || again.ID != id {
			t.Fatalf("the second time %+v, %v; the first %+v", again, err, c.Cluster)
		}
		_, err := a.AddLearner(ctx(t), n, freeAddr(t))
		wantErr(t, err, ErrExists)
		_, err = a.AddLearner(ctx(t), "x", c.Listen)
		wantErr(t, err, ErrExists)
		members, err := a.Members(ctx(t))
		if i := slices.IndexFunc(members, func(m Member) bool { return m.Name == n }); err != nil || i < 0 || !members[i].Learner || members[i].Started {
			t.Fatalf("members %+v, %v", members, err)
		}
		fs[n] = open(t, c)
		for range 2 {
			if err := a.Promote(ctx(t), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantErr(t, a.Promote(ctx(t), "nobody"), ErrNotFound)
	close(stop)
	writer.Wait()
	rev, err := fs["c"].Linearizable(ctx(t))
	for n, f := range fs {
		snap := f.at(rev, err)
		for i := range written {
			if snap.Network(fmt.Sprint(i)) == nil {
				t.Fatalf("%s doesn't have write %d of %d", n, i, written)
			}
		}
		if h, _ := f.Health(); h.Voters != 3 {
			t.Errorf("%s: health %+v", n, h)
		}
	}
	t.Logf("%d writes meanwhile", written)
	closeAll(fs)
}

func TestADeadServerIsReplaced(t *testing.T) {
	t.Parallel()
	cs := planned(t, "a", "b", "c")
	fs := openAll(t, cs)
	a := fs["a"]
	members, err := a.Members(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	dead := members[2]
	fs["c"].close()
	old := cs["c"]
	// The same name and address, an empty disk.
	c := config(t)
	c.Name, c.Listen = "c", old.Listen
	for range 2 {
		if c.Cluster, err = a.ReplaceMember(ctx(t), dead, "c", c.Listen); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, c)
	if _, err = a.ReplaceMember(ctx(t), dead, "c", c.Listen); err != nil {
		t.Fatal(err)
	}
	if err := a.Promote(ctx(t), "c"); err != nil {
		t.Fatal(err)
	}
	rev, err := f.Create(ctx(t), network("n"))
	a.at(rev, err)
	members, err = a.Members(ctx(t))
	if err != nil || len(members) != 3 || members[2].ID == dead.ID || members[2].Learner {
		t.Fatalf("members %+v, %v", members, err)
	}
	// Its old disk is of no use any more, wherever it turns up.
	old.Listen, old.Cluster, old.Advertise = freeAddr(t), Cluster{}, old.Listen
	wantErr(t, openErr(t, old), ErrRemoved)
	// One that runs is told so.
	b := fs["b"]
	for range 2 {
		if err := a.RemoveMember(ctx(t), "b"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-b.Failed():
		wantErr(t, b.Err(), ErrRemoved)
	case <-ctx(t).Done():
		t.Fatal("b was not told")
	}
	f.at(f.Create(ctx(t), network("m")))
}

// told calls a function with what is logged.
type told struct {
	slog.Handler
	f func(slog.Record)
}

func (h told) Handle(ctx context.Context, r slog.Record) error {
	h.f(r)
	return h.Handler.Handle(ctx, r)
}

// TestTheOthersMayGoWhileAStoreIsOpened: it has met them, and then they end before it
// has read anything.
func TestTheOthersMayGoWhileAStoreIsOpened(t *testing.T) {
	t.Parallel()
	for name, comeBack := range map[string]bool{"for good": false, "and come back": true} {
		t.Run(name, func(t *testing.T) {
			cs := planned(t, "a", "b", "c")
			fs := openAll(t, cs)
			rev, err := fs["a"].Create(ctx(t), network("n"))
			for _, f := range fs {
				f.at(rev, err)
			}
			fs["a"].close()
			c, listed := cs["a"], 0
			c.LocalAfter = time.Hour
			if !comeBack {
				c.LocalAfter = 10 * time.Second // more than the start takes
			}
			c.tuning.beforeList = func() {
				if listed++; listed == 1 {
					closeAll(map[string]*fixture{"b": fs["b"], "c": fs["c"]})
				}
			}
			var back sync.WaitGroup
			c.Logger = slog.New(told{c.Logger.Handler(), func(r slog.Record) {
				if comeBack && strings.Contains(r.Message, "asking again") {
					back.Go(func() { fs["b"] = open(t, cs["b"]) })
				}
			}})
			a := open(t, c)
			back.Wait()
			if a.db.Snapshot().Network("n") == nil {
				t.Error("what is stored here isn't there")
			}
			if listed < 2 {
				t.Errorf("%d listings", listed)
			}
			if _, err := a.Create(ctx(t), network("m")); comeBack != (err == nil) {
				t.Errorf("write: %v", err)
			}
			if !comeBack {
				fs["b"] = open(t, cs["b"])
				a.eventually(func() error { _, err := a.Create(ctx(t), network("k")); return err })
			}
		})
	}
}

func TestServersThatHaveAllMoved(t *testing.T) {
	t.Parallel()
	cs := planned(t, "a", "b", "c")
	fs := openAll(t, cs)
	fs["a"].at(fs["a"].Create(ctx(t), network("n")))
	closeAll(fs)
	// The second time etcd's log still says where they went at the first. One after
	// the other: each has gone through its log before it meets somebody.
	for _, id := range []string{"m", "k"} {
		before, now := map[string]string{}, map[string]string{}
		for n, c := range cs {
			before[n], now[n] = c.Listen, freeAddr(t)
		}
		for n, c := range cs {
			c.Listen, c.Cluster, c.LocalAfter = now[n], Cluster{}, time.Millisecond
			c.Locate = func(_ context.Context, noted map[string]string) map[string]string {
				if !maps.Equal(noted, before) {
					t.Errorf("%s has noted %v, not %v", n, noted, before)
				}
				return now
			}
			cs[n] = c
		}
		fs = map[string]*fixture{}
		for n, c := range cs {
			fs[n] = open(t, c)
		}
		until(t, "all are in touch", func() bool {
			return !fs["a"].Parted() && !fs["b"].Parted() && !fs["c"].Parted()
		})
		fs["b"].at(fs["b"].Create(ctx(t), network(id)))
		until(t, "all know the new addresses", func() bool {
			for _, f := range fs {
				members, err := f.Members(ctx(t))
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range members {
					if m.Address != now[m.Name] {
						return false
					}
				}
			}
			return true
		})
		closeAll(fs)
	}
	// From now on nobody has to tell them.
	for n, c := range cs {
		c.Locate, c.LocalAfter = nil, 0
		cs[n] = c
	}
	fs = openAll(t, cs)
	fs["c"].at(fs["c"].Create(ctx(t), network("l")))
	if snap := fs["a"].db.Snapshot(); snap.Network("n") == nil {
		t.Error("what was there before is gone")
	}
}

func TestAMemberFarBehindCatchesUp(t *testing.T) {
	cs := planned(t, "a", "b", "c")
	for n, c := range cs {
		c.tuning.catchUp = 10
		cs[n] = c
	}
	fs := openAll(t, cs)
	away := fs["c"]
	if leader(t, fs) == "c" {
		away = fs["b"]
	}
	server := away.engine.etcd.Server
	for _, m := range server.Cluster().Members() {
		if m.ID != server.MemberID() {
			server.CutPeer(m.ID)
		}
	}
	a := fs[leader(t, fs)]
	a.at(a.Create(ctx(t), network("gone")))
	for i := range 300 {
		if _, err := a.Create(ctx(t), network(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	rev, err := a.Delete(ctx(t), model.KindNetwork, "gone")
	a.at(rev, err)
	if _, err := a.client.Compact(ctx(t), rev); err != nil {
		t.Fatal(err)
	}
	for _, m := range server.Cluster().Members() {
		if m.ID != server.MemberID() {
			server.MendPeer(m.ID)
		}
	}
	snap := away.at(rev, nil)
	if snap.Network("299") == nil || snap.Network("0") == nil || snap.Network("gone") != nil {
		t.Error("the tables are not those of the others")
	}
	away.at(away.Create(ctx(t), network("after")))
}

func TestPlansThatMakeNoSense(t *testing.T) {
	for name, plan := range map[string]Cluster{
		"not named":    {ID: "x", Members: map[string]string{"b": "127.0.0.1:1"}},
		"no id":        {Members: map[string]string{"a": "127.0.0.1:1"}},
		"no address":   {ID: "x", Members: map[string]string{"a": "127.0.0.1"}},
		"same address": {ID: "x", Members: map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:1"}},
		"nobody":       {ID: "x", Joining: true},
	} {
		c := config(t)
		c.Name, c.Cluster = "a", plan
		if err := openErr(t, c); !strings.Contains(err.Error(), "plan") {
			t.Errorf("%s: %v", name, err)
		}
		if HasData(c.Dir) {
			t.Errorf("%s: a store was made", name)
		}
	}
}

func TestDataThatIsGoneIsToldOf(t *testing.T) {
	c := config(t)
	open(t, c).close()
	if err := os.RemoveAll(filepath.Join(c.Dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	wantErr(t, openErr(t, c), ErrDamaged)
}
