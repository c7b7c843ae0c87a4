package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"kvnet/internal/pause"
	"kvnet/model"
	"kvnet/model/state"
)

func bigNetwork(id string) *model.Network {
	n := network(id)
	n.Name = strings.Repeat("x", 32<<10)
	return n
}

// fill creates objects until the store refuses.
func (f *fixture) fill() (n int) {
	f.t.Helper()
	for ; n < 10000; n++ {
		_, err := f.Create(ctx(f.t), bigNetwork(fmt.Sprint(n)))
		if err != nil {
			wantErr(f.t, err, ErrNoSpace)
			return n
		}
	}
	f.t.Fatal("the quota is no limit")
	return 0
}

// eventually repeats a write until it isn't refused for want of space.
func (f *fixture) eventually(write func() error) {
	f.t.Helper()
	c := ctx(f.t)
	for {
		err := write()
		if err == nil {
			return
		}
		if !errors.Is(err, ErrNoSpace) || !pause.For(c, 10*time.Millisecond) {
			f.t.Fatalf("still refused: %v", err)
		}
	}
}

func smallQuota(t *testing.T) Config {
	c := config(t)
	c.Quota = 1 << 20
	c.tuning.upkeep = 20 * time.Millisecond
	return c
}

func TestAFullStoreRefusesClientsOnly(t *testing.T) {
	f := open(t, smallQuota(t))
	term := takeTerm(f, "a", "1")
	n := f.fill()
	if n < 10 {
		t.Fatalf("full after %d objects of 32 KiB", n)
	}
	// Everything that is stored is still served, and the leader still leads.
	f.at(f.Decide(ctx(t), term, []Decision{{New: routerStatus("r", "g")}}))
	if got := f.db.Snapshot().Len(model.KindNetwork); got != n {
		t.Fatalf("%d of %d objects", got, n)
	}
	takeTerm(f, "a", "2")

	// Old revisions don't keep it full: deleting makes room.
	for i := range n / 2 {
		if _, err := f.Delete(ctx(t), model.KindNetwork, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually(func() error { _, err := f.Create(ctx(t), bigNetwork("after")); return err })
}

func TestHistoryAloneDoesNotFillTheStore(t *testing.T) {
	f := open(t, smallQuota(t))
	f.at(f.Create(ctx(t), bigNetwork("n")))
	for i := range 100 { // three times the quota
		f.eventually(func() error {
			_, err := f.Update(ctx(t), model.KindNetwork, "n", func(o model.Object) (model.Object, error) {
				o.(*model.Network).MTU = int32(i)
				return o, nil
			})
			return err
		})
	}
}

// overfill writes past the store's own limit until the engine refuses.
func (f *fixture) overfill() {
	f.t.Helper()
	value := strings.Repeat("x", 256<<10)
	for range 1000 {
		_, err := f.client.Put(ctx(f.t), prefix+"filler", value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	f.t.Fatal("the engine has no limit")
}

func TestAnEngineThatRefusesWritesIsPutRight(t *testing.T) {
	c := smallQuota(t)
	c.tuning.headroom = 1 << 20
	c.tuning.upkeep = time.Hour // only when a write was refused
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))
	f.overfill()
	_, err := f.TakeTerm(ctx(t), "a", "1")
	wantErr(t, err, ErrNoSpace)
	f.eventually(func() error { _, err := f.TakeTerm(ctx(t), "a", "1"); return err })
	f.at(f.Create(ctx(t), network("m")))
	if f.db.Snapshot().Network("n") == nil {
		t.Fatal("an object was lost on the way")
	}
}

func TestAFullStoreIsPutRightWhenItIsOpened(t *testing.T) {
	c := smallQuota(t)
	c.tuning.headroom = 1 << 20
	c.tuning.upkeep = time.Hour
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))
	f.overfill()
	f.close()
	f = open(t, c)
	takeTerm(f, "a", "1")
	f.at(f.Create(ctx(t), network("m")))
	if f.db.Snapshot().Network("n") == nil {
		t.Fatal("an object was lost on the way")
	}
}

func TestTheLastSpaceOfTheDiskIsLeftAlone(t *testing.T) {
	c := config(t)
	c.MinFree = 100 << 20
	var free atomic.Int64
	free.Store(1 << 40)
	c.tuning.free = func(string) (int64, bool) { return free.Load(), true }
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))

	free.Store(80 << 20)
	_, err := f.Create(ctx(t), network("m"))
	wantErr(t, err, ErrNoSpace)
	if !strings.Contains(err.Error(), c.Dir) || !strings.Contains(err.Error(), "80 MiB") {
		t.Errorf("the error does not say where and how much: %v", err)
	}
	_, err = f.Update(ctx(t), model.KindNetwork, "n", func(o model.Object) (model.Object, error) {
		o.(*model.Network).MTU = 1
		return o, nil
	})
	wantErr(t, err, ErrNoSpace)
	term := takeTerm(f, "a", "1") // the leader's reserve
	f.at(f.Decide(ctx(t), term, []Decision{{New: routerStatus("r", "g")}}))
	f.at(f.Delete(ctx(t), model.KindNetwork, "n"))

	free.Store(40 << 20)
	_, err = f.TakeTerm(ctx(t), "a", "1")
	wantErr(t, err, ErrNoSpace)
	if err := f.Ping(ctx(t)); err != nil {
		t.Fatalf("reading needs space: %v", err)
	}
	f.close()
	f = open(t, c) // a store that exists is opened all the same
	free.Store(1 << 40)
	f.at(f.Create(ctx(t), network("m")))

	free.Store(40 << 20)
	c.Dir = t.TempDir()
	s, err := Open(ctx(t), c, state.New())
	if err == nil {
		t.Error(s.Close())
	}
	wantErr(t, err, ErrNoSpace)
	if _, err := os.Stat(filepath.Join(c.Dir, "etcd", "member")); err == nil {
		t.Error("a store that could not be made was begun")
	}
}
