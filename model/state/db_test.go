package state_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"kvnet/model"
	"kvnet/model/state"
)

func TestApplyDeliversMergedChangesWithTheSnapshotAfterThem(t *testing.T) {
	db := state.New()
	sub, _ := db.Subscribe()
	defer sub.Close()
	r1 := &model.Router{Meta: model.Meta{Created: 2, Modified: 2}, Name: "r1", Internal: []string{"a", "b"}}
	r2 := &model.Router{Meta: model.Meta{Created: 2, Modified: 3}, Name: "r1", Internal: []string{"b"}}
	must(t, db.Apply(2, []state.Event{{Kind: model.KindRouter, Key: "r1", Object: r1}}))
	must(t, db.Apply(3, []state.Event{{Kind: model.KindRouter, Key: "r1", Object: r2}}))
	snap, ch := sub.Take()
	if len(ch) != 1 || ch[0].Old != nil || ch[0].New != model.Object(r2) {
		t.Fatalf("changes %+v", ch)
	}
	if snap.Revision() != 3 || len(slices.Collect(snap.RoutersByInternal("a"))) != 0 || len(slices.Collect(snap.RoutersByInternal("b"))) != 1 {
		t.Fatalf("snapshot not after the changes")
	}
}

func TestReplaceTurnsTheDifferenceIntoChanges(t *testing.T) {
	db := state.New()
	n1 := &model.Network{Meta: model.Meta{Created: 1, Modified: 1}, ID: "n1"}
	n2 := &model.Network{Meta: model.Meta{Created: 2, Modified: 2}, ID: "n2"}
	must(t, db.Replace(2, []model.Object{n1, n2}))
	if !db.Snapshot().Complete() {
		t.Fatal("not complete")
	}
	sub, _ := db.Subscribe()
	defer sub.Close()
	n3 := &model.Network{Meta: model.Meta{Created: 3, Modified: 3}, ID: "n3"}
	must(t, db.Replace(5, []model.Object{n2, n3}))
	_, ch := sub.Take()
	if len(ch) != 2 || ch[0].Key != "n1" || ch[0].New != nil || ch[1].Key != "n3" {
		t.Fatalf("changes %+v", ch)
	}
}

func TestPrefixOfAnotherKeyIsNotFound(t *testing.T) {
	db := state.New()
	p := &model.Port{MAC: model.MAC{2, 0, 0, 0, 0, 1}, NetworkID: "net-10", IP: netip.MustParseAddr("10.0.0.1")}
	must(t, db.Apply(1, []state.Event{{Kind: model.KindPort, Key: p.Key(), Object: p}}))
	if got := slices.Collect(db.Snapshot().PortsByNetwork("net-1")); len(got) != 0 {
		t.Fatalf("port of net-10 found in net-1")
	}
	if got := slices.Collect(db.Snapshot().PortsByNetwork("net-10")); len(got) != 1 {
		t.Fatalf("port not found")
	}
}

func TestRemovalOfAReplacedPortNumberIsIgnored(t *testing.T) {
	db := state.New()
	db.SwitchConnected(model.Switch{DPID: 1}, []model.SwitchPort{{DPID: 1, Name: "a", Number: 3}})
	db.SwitchPortChanged(model.SwitchPort{DPID: 1, Name: "a", Number: 4})
	db.SwitchPortRemoved(1, "a", 3)
	if p := db.Snapshot().SwitchPort(1, "a"); p == nil || p.Number != 4 {
		t.Fatalf("port %+v", p)
	}
	db.SwitchDisconnected(1, "test")
	if p := db.Snapshot().SwitchPort(1, "a"); p != nil {
		t.Fatalf("port stayed after the connection was lost")
	}
}

func TestWaitRevisionWakesWhenItIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := state.New()
		ended := map[int64]error{}
		ctx, cancel := context.WithCancel(t.Context())
		for _, revision := range []int64{2, 4, 9} {
			go func() { ended[revision] = db.WaitRevision(ctx, revision) }()
		}
		expect := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(ended) != n {
				t.Fatalf("%d have returned, want %d: %v", len(ended), n, ended)
			}
		}
		expect(0)
		must(t, db.Apply(3, nil))
		expect(1)
		must(t, db.Replace(4, nil))
		expect(2)
		cancel()
		expect(3)
		if ended[2] != nil || ended[4] != nil || !errors.Is(ended[9], context.Canceled) {
			t.Errorf("they ended with %v", ended)
		}
		must(t, db.WaitRevision(ctx, 4))
	})
}

func TestWaitLooksAtEachSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := state.New()
		var seen []int64
		go func() {
			must(t, db.Wait(t.Context(), func(s state.Snapshot) bool {
				seen = append(seen, s.Revision())
				return s.Revision() == 3
			}))
		}()
		for revision := range int64(3) {
			synctest.Wait()
			must(t, db.Apply(revision+1, nil))
		}
		synctest.Wait()
		if !slices.Equal(seen, []int64{0, 1, 2, 3}) {
			t.Errorf("it saw the revisions %v", seen)
		}
	})
}

func TestAnEventOfNoKnownKindChangesNothing(t *testing.T) {
	db := state.New()
	n := &model.Network{ID: "n"}
	if err := db.Apply(2, []state.Event{{Kind: model.KindNetwork, Key: "n", Object: n}, {Kind: "odd", Key: "x"}}); err == nil {
		t.Error("it was taken")
	}
	if s := db.Snapshot(); s.Network("n") != nil || s.Revision() != 0 {
		t.Error("it changed something")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
