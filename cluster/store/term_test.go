package store

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvnet/model"
)

func routerStatus(name, gateway string) *model.RouterStatus {
	return &model.RouterStatus{Name: name, Gateway: gateway}
}

func takeTerm(f *fixture, name, instance string) Term {
	f.t.Helper()
	t, err := f.TakeTerm(ctx(f.t), name, instance)
	if err != nil {
		f.t.Fatal(err)
	}
	return t
}

func TestTermsOnlyGrow(t *testing.T) {
	c := config(t)
	var last Term
	for life := range 3 {
		f := open(t, c)
		for range 3 {
			now := takeTerm(f, "a", "i")
			if now.Generation() <= last.Generation() || now.Name != "a" || now.Instance != "i" {
				t.Fatalf("life %d: %+v after %+v", life, now, last)
			}
			last = now
		}
		if got, err := f.CurrentTerm(ctx(t)); err != nil || got != last {
			t.Fatalf("current term %+v, %v", got, err)
		}
		f.close()
	}
}

func TestANewStoreHasTheEpochOfItsTime(t *testing.T) {
	before := time.Now().Unix()
	f := open(t, config(t))
	term := takeTerm(f, "a", "i")
	if e := int64(term.Epoch); e < before || e > time.Now().Unix() {
		t.Fatalf("epoch %d, made at %d", e, before)
	}
	if at, err := f.Created(ctx(t)); err != nil || at.Unix() != int64(term.Epoch) {
		t.Fatalf("created %v, %v", at, err)
	}
	if term.Generation() != uint64(term.Epoch)<<32|uint64(term.Term) {
		t.Fatalf("generation %x", term.Generation())
	}
}

func TestEpochsGoOnAfterTheClock(t *testing.T) {
	for _, c := range []struct {
		old  uint32
		now  int64
		want uint32
	}{
		{0, 1_800_000_000, 1_800_000_000},
		{1_800_000_000, 1_700_000_000, 1_800_000_001},
		{5, -1, 6},
		{0, 1 << 40, math.MaxUint32},
		{math.MaxUint32, 0, math.MaxUint32},
	} {
		if got := nextEpoch(c.old, time.Unix(c.now, 0)); got != c.want {
			t.Errorf("after %d at %d: %d, want %d", c.old, c.now, got, c.want)
		}
	}
}

func TestTheTermAfterTheLastBelongsToTheNextEpoch(t *testing.T) {
	last := Term{Epoch: 7, Term: math.MaxUint32}
	if next := nextTerm(last, 7); next.Generation() <= last.Generation() || next.Term == 0 {
		t.Fatalf("%+v after %+v", next, last)
	}
	if next := nextTerm(Term{Epoch: 9, Term: 3}, 7); next.Epoch != 9 || next.Term != 4 {
		t.Fatalf("%+v: the epoch went back", next)
	}
}

func TestARaisedEpochCountsForTheNextTerm(t *testing.T) {
	f := open(t, config(t))
	first := takeTerm(f, "a", "i")
	want := first.Epoch + 1000
	for range 2 { // raising again to the same changes nothing
		if got, err := f.RaiseEpoch(ctx(t), want); err != nil || got != want {
			t.Fatalf("%d, %v", got, err)
		}
	}
	if got, err := f.RaiseEpoch(ctx(t), 1); err != nil || got != want {
		t.Fatalf("lowered to %d, %v", got, err)
	}
	if next := takeTerm(f, "a", "i"); next.Epoch != want || next.Generation() <= first.Generation() {
		t.Fatalf("%+v after %+v", next, first)
	}
}

func TestATermHasOneOwner(t *testing.T) {
	f := open(t, config(t))
	var mu sync.Mutex
	owners := map[uint64]string{}
	var wg sync.WaitGroup
	var conflicts atomic.Int64
	for g := range 8 {
		wg.Go(func() {
			for range 10 {
				term, err := f.TakeTerm(ctx(t), "n", string(rune('a'+g)))
				if errors.Is(err, ErrConflict) {
					conflicts.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if o, ok := owners[term.Generation()]; ok {
					t.Errorf("term %+v is also %s's", term, o)
				}
				owners[term.Generation()] = term.Instance
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(owners)+int(conflicts.Load()) != 80 {
		t.Fatalf("%d terms, %d conflicts", len(owners), conflicts.Load())
	}
}

func TestOnlyTheLeaderDecides(t *testing.T) {
	f := open(t, config(t))
	_, err := f.Decide(ctx(t), Term{Term: 1}, []Decision{{New: routerStatus("r", "g")}})
	wantErr(t, err, ErrNotLeader)

	old := takeTerm(f, "a", "1")
	s := f.at(f.Decide(ctx(t), old, []Decision{{New: routerStatus("r", "g1")}}))
	if s.Get(model.KindRouterStatus, "r").(*model.RouterStatus).Gateway != "g1" {
		t.Fatal("not written")
	}
	// The same server in its next life is another leader.
	now := takeTerm(f, "a", "2")
	seen := s.Get(model.KindRouterStatus, "r")
	_, err = f.Decide(ctx(t), old, []Decision{{Old: seen, New: routerStatus("r", "g2")}})
	wantErr(t, err, ErrNotLeader)
	for _, forged := range []Term{
		{Name: now.Name, Instance: now.Instance, Epoch: now.Epoch, Term: now.Term + 1},
		{Name: now.Name, Instance: "3", Epoch: now.Epoch, Term: now.Term},
		{},
	} {
		_, err = f.Decide(ctx(t), forged, []Decision{{Old: seen, New: routerStatus("r", "g2")}})
		wantErr(t, err, ErrNotLeader)
	}
	s = f.at(f.Decide(ctx(t), now, []Decision{{Old: seen, New: routerStatus("r", "g3")}}))
	if s.Get(model.KindRouterStatus, "r").(*model.RouterStatus).Gateway != "g3" {
		t.Fatal("not written")
	}
}

func TestStaleDecisionsAreConflicts(t *testing.T) {
	f := open(t, config(t))
	term := takeTerm(f, "a", "1")
	s := f.at(f.Decide(ctx(t), term, []Decision{{New: routerStatus("r", "g1")}, {New: routerStatus("q", "g1")}}))
	old := s.Get(model.KindRouterStatus, "r")
	f.at(f.Decide(ctx(t), term, []Decision{{Old: old, New: routerStatus("r", "g2")}}))
	for name, d := range map[string]Decision{
		"stale":         {Old: old, New: routerStatus("r", "g3")},
		"stale, delete": {Old: old},
		"not absent":    {New: routerStatus("r", "g3")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Decide(ctx(t), term, []Decision{{New: routerStatus("new", "")}, d})
			wantErr(t, err, ErrConflict)
			if errors.Is(err, ErrNotLeader) {
				t.Error("is ErrNotLeader too")
			}
			_, err = f.Get(ctx(t), model.KindRouterStatus, "new")
			wantErr(t, err, ErrNotFound)
		})
	}
	// Who is not the leader learns that, also if the decision is stale.
	takeTerm(f, "b", "1")
	_, err := f.Decide(ctx(t), term, []Decision{{Old: old, New: routerStatus("r", "g3")}})
	wantErr(t, err, ErrNotLeader)
}

func TestTheLeaderWritesDecidedKindsOnly(t *testing.T) {
	f := open(t, config(t))
	term := takeTerm(f, "a", "1")
	for _, d := range []Decision{{New: router("r")}, {}} {
		if _, err := f.Decide(ctx(t), term, []Decision{d}); err == nil {
			t.Errorf("%+v was written", d)
		}
	}
	if rev, err := f.Decide(ctx(t), term, nil); err != nil || rev == 0 {
		t.Fatalf("nothing to decide: %d, %v", rev, err)
	}
}

func TestManyDecisionsAreWritten(t *testing.T) {
	f := open(t, config(t))
	term := takeTerm(f, "a", "1")
	var d []Decision
	for i := range 2*decideBatch + 1 {
		d = append(d, Decision{New: routerStatus(string(rune('a'+i)), "g")})
	}
	if n := f.at(f.Decide(ctx(t), term, d)).Len(model.KindRouterStatus); n != len(d) {
		t.Fatalf("%d of %d", n, len(d))
	}
}

func TestTheWatchShowsTheLeader(t *testing.T) {
	f := open(t, config(t))
	seen, changed := f.Leader()
	if seen != (Term{}) {
		t.Fatalf("leader %+v of a new store", seen)
	}
	term := takeTerm(f, "a", "1")
	select {
	case <-changed:
	case <-ctx(t).Done():
		t.Fatal("the new leader was not seen")
	}
	if seen, _ = f.Leader(); seen != term {
		t.Fatalf("leader %+v, want %+v", seen, term)
	}
}

func TestTheClusterIDStays(t *testing.T) {
	c := config(t)
	f := open(t, c)
	id, err := f.ClusterID(ctx(t))
	if err != nil || len(id) != 32 {
		t.Fatalf("%q, %v", id, err)
	}
	at, err := f.Created(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	f.close()
	f = open(t, c)
	if again, err := f.ClusterID(ctx(t)); err != nil || again != id {
		t.Fatalf("%q after %q, %v", again, id, err)
	}
	if again, err := f.Created(ctx(t)); err != nil || again != at {
		t.Fatalf("%v after %v, %v", again, at, err)
	}
	other := open(t, config(t))
	if o, err := other.ClusterID(ctx(t)); err != nil || o == id {
		t.Fatalf("another store has the same id %q, %v", o, err)
	}
}

func TestACandidateTakesOverOnlyFromWhomItHasSeen(t *testing.T) {
	f := open(t, config(t))
	a := takeTerm(f, "a", "1")
	b, err := f.TakeTermAfter(ctx(t), "b", "2", a)
	if err != nil || b.Term != a.Term+1 {
		t.Fatalf("%+v, %v", b, err)
	}
	// c has judged a, too, and is late.
	_, err = f.TakeTermAfter(ctx(t), "c", "3", a)
	wantErr(t, err, ErrConflict)
	// b has not heard that it leads already.
	again, err := f.TakeTermAfter(ctx(t), "b", "2", a)
	if err != nil || again.Term != b.Term+1 {
		t.Fatalf("%+v, %v", again, err)
	}
}
