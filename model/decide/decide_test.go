package decide_test

import (
	"fmt"
	"net/netip"
	"testing"

	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
)

func TestElect(t *testing.T) {
	gws := []string{"gw1", "gw2", "gw3"}
	moved, used := 0, map[string]int{}
	for i := range 3000 {
		r := fmt.Sprintf("router-%d", i)
		g := decide.Elect(r, "", gws)
		used[g]++
		if got := decide.Elect(r, "", []string{"gw3", "gw1", "gw2"}); got != g {
			t.Fatalf("order of gateways matters: %s, %s", g, got)
		}
		if got := decide.Elect(r, "gw2", gws); got != "gw2" {
			t.Fatalf("the present gateway did not stay")
		}
		// With a fourth gateway only about a quarter would choose anew.
		if decide.Elect(r, "", append(gws, "gw4")) != g {
			moved++
		}
	}
	for _, g := range gws {
		if used[g] < 800 {
			t.Errorf("%s got %d of 3000 routers", g, used[g])
		}
	}
	if moved < 600 || moved > 900 {
		t.Errorf("%d of 3000 routers would choose the fourth gateway", moved)
	}
	if g := decide.Elect("r", "gw1", nil); g != "" {
		t.Errorf("elected %q of none", g)
	}
}

func TestAllocatorGivesTheLowestFreeNumber(t *testing.T) {
	a := decide.NewAllocator(5, 7)
	a.Use(6)
	want := []uint32{5, 7}
	for _, w := range want {
		if n, ok := a.Next(); !ok || n != w {
			t.Fatalf("got %d %v, want %d", n, ok, w)
		}
	}
	if n, ok := a.Next(); ok {
		t.Fatalf("got %d beyond the range", n)
	}
	a.Free(6)
	if n, ok := a.Next(); !ok || n != 6 {
		t.Fatalf("got %d %v, want 6", n, ok)
	}
}

func apply(t *testing.T, db *state.DB, objs ...model.Object) {
	t.Helper()
	for _, o := range objs {
		rev := db.Snapshot().Revision() + 1
		if o.Stored().Created == 0 {
			o.Stored().Created = rev
		}
		o.Stored().Modified = rev
		if err := db.Apply(rev, []state.Event{{Kind: o.Kind(), Key: o.Key(), Object: o}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrittenGatewayCountsAtTheWriteOnly(t *testing.T) {
	db := state.New()
	zones := decide.NewAllocator(1, 100)
	r := &model.Router{Name: "r1", Gateway: "gw2", GatewayWrite: 1}
	apply(t, db, r)
	st := decide.Router(db.Snapshot(), r, decide.Gateways{Able: []string{"gw1"}}, zones)
	if st.Gateway != "gw1" || st.Zone != 1 {
		t.Fatalf("%+v", st)
	}
	apply(t, db, st)
	// gw2 comes later: the old wish is not remembered.
	if st = decide.Router(db.Snapshot(), r, decide.Gateways{Able: []string{"gw1", "gw2"}}, zones); st.Gateway != "gw1" {
		t.Fatalf("moved to %q", st.Gateway)
	}
	r2 := *r
	r2.GatewayWrite = 2
	apply(t, db, &r2)
	st = decide.Router(db.Snapshot(), &r2, decide.Gateways{Able: []string{"gw1", "gw2"}}, zones)
	if st.Gateway != "gw2" || st.Zone != 1 {
		t.Fatalf("%+v", st)
	}
	apply(t, db, st)
	// One that was lost a moment ago keeps the router while no other is able.
	if st := decide.Router(db.Snapshot(), &r2, decide.Gateways{Lost: []string{"gw2"}}, zones); st.Gateway != "gw2" {
		t.Fatalf("moved to %q", st.Gateway)
	}
	if st := decide.Router(db.Snapshot(), &r2, decide.Gateways{Able: []string{"gw1"}, Lost: []string{"gw2"}}, zones); st.Gateway != "gw1" {
		t.Fatalf("stayed on %q", st.Gateway)
	}
	// One of which a switch is connected keeps it in any case.
	if st := decide.Router(db.Snapshot(), &r2, decide.Gateways{Able: []string{"gw1"}, Cut: []string{"gw2"}, Lost: []string{"gw2"}}, zones); st.Gateway != "gw2" {
		t.Fatalf("moved to %q", st.Gateway)
	}
	// N-4: without any gateway the election is cleared.
	if st = decide.Router(db.Snapshot(), &r2, decide.Gateways{}, zones); st.Gateway != "" {
		t.Fatalf("kept %q", st.Gateway)
	}
}

func TestPeerMACStaysWhileTheAddressIsEqual(t *testing.T) {
	db := state.New()
	zones := decide.NewAllocator(1, 100)
	ip := netip.MustParseAddr("172.16.0.1")
	mac := model.MAC{2, 1, 1, 1, 1, 1}
	r := &model.Router{Name: "r1", Peer: &model.PeerRouter{IP: ip}}
	apply(t, db, r)
	st := decide.Router(db.Snapshot(), r, decide.Gateways{}, zones)
	learned := *st
	learned.PeerMAC = mac
	apply(t, db, &learned)
	if st = decide.Router(db.Snapshot(), r, decide.Gateways{}, zones); st.PeerMAC != mac {
		t.Fatal("learned MAC was lost")
	}
	r2 := *r
	r2.Peer = &model.PeerRouter{IP: netip.MustParseAddr("172.16.0.2"), Write: 1}
	if st = decide.Router(db.Snapshot(), &r2, decide.Gateways{}, zones); !st.PeerMAC.IsZero() || st.PeerIP != r2.Peer.IP {
		t.Fatalf("%+v", st)
	}
	written := model.MAC{2, 2, 2, 2, 2, 2}
	r3 := *r
	r3.Peer = &model.PeerRouter{IP: ip, MAC: written, Write: 1}
	if st = decide.Router(db.Snapshot(), &r3, decide.Gateways{}, zones); st.PeerMAC != written {
		t.Fatalf("%+v", st)
	}
	if got := decide.PeerMAC(&r3, &learned); got != written {
		t.Fatalf("a written MAC does not count at once: %v", got)
	}
	if got := decide.PeerMAC(&r2, &learned); !got.IsZero() {
		t.Fatalf("the MAC of another address is used: %v", got)
	}
}

func TestStatusOfAnEarlierLifeCountsAsAbsent(t *testing.T) {
	db := state.New()
	zones := decide.NewAllocator(1, 100)
	r := &model.Router{Name: "r1"}
	apply(t, db, r, &model.RouterStatus{Name: "r1", Life: 999, Gateway: "gw9", Zone: 42})
	st := decide.Router(db.Snapshot(), r, decide.Gateways{Able: []string{"gw1"}}, zones)
	if st.Gateway != "gw1" || st.Zone != 1 || st.Life != r.Created {
		t.Fatalf("%+v", st)
	}
}

func TestNodeState(t *testing.T) {
	node := &model.Node{Hostname: "gw1", Type: model.NodeGateway, IntegrationBridge: "of:1", TunnelBridge: "of:2",
		PhysIntfs: []model.PhysicalIntf{{Network: "x", PhysBridge: "of:3"}}}
	complete := func() *model.NodeStatus {
		return &model.NodeStatus{Hostname: "gw1", Life: 1, State: model.NodeComplete}
	}
	up := func(db *state.DB, ids ...model.DPID) {
		for _, d := range ids {
			db.SwitchConnected(model.Switch{DPID: d}, nil)
		}
	}
	cases := []struct {
		law   string
		setup func(*testing.T, *state.DB)
		grace bool
		want  model.NodeState
	}{
		{"a new node is INIT", func(*testing.T, *state.DB) {}, true, model.NodeInit},
		{"INIT stays until all bridges are there", func(_ *testing.T, db *state.DB) { up(db, 1, 2) }, true, model.NodeInit},
		{"all bridges: COMPLETE", func(_ *testing.T, db *state.DB) { up(db, 1, 2, 3) }, false, model.NodeComplete},
		{"COMPLETE stays before any bridge came back", func(t *testing.T, db *state.DB) { apply(t, db, complete()) }, false, model.NodeComplete},
		{"COMPLETE ends when the grace is over", func(t *testing.T, db *state.DB) { apply(t, db, complete()); up(db, 1) }, true, model.NodeIncomplete},
		{"a lost connection ends COMPLETE at once", func(t *testing.T, db *state.DB) {
			apply(t, db, complete())
			up(db, 1, 2, 3)
			db.SwitchDisconnected(3, "test")
		}, false, model.NodeIncomplete},
	}
	for _, c := range cases {
		t.Run(c.law, func(t *testing.T) {
			db := state.New()
			n := *node
			apply(t, db, &n)
			c.setup(t, db)
			if st := decide.Node(db.Snapshot(), &n, c.grace, decide.NewExternalMACs()); st.State != c.want {
				t.Errorf("got %s, want %s", st.State, c.want)
			}
		})
	}
	t.Run("a gateway gets the first free MAC and keeps it", func(t *testing.T) {
		db, macs := state.New(), decide.NewExternalMACs()
		macs.Use(decide.ExternalMACNumber(model.FirstExternalMAC))
		n := *node
		apply(t, db, &n)
		st := decide.Node(db.Snapshot(), &n, false, macs)
		if want := (model.MAC{0xfe, 0, 0, 0, 0, 3}); st.ExternalMAC != want {
			t.Errorf("got %s, want %s", st.ExternalMAC, want)
		}
		apply(t, db, st)
		worker := n
		worker.Type = model.NodeWorker
		if again := decide.Node(db.Snapshot(), &worker, false, decide.NewExternalMACs()); again.ExternalMAC != st.ExternalMAC {
			t.Errorf("became %s", again.ExternalMAC)
		}
	})
	t.Run("a worker has no MAC outside", func(t *testing.T) {
		db := state.New()
		n := *node
		n.Type = model.NodeWorker
		apply(t, db, &n)
		if st := decide.Node(db.Snapshot(), &n, false, decide.NewExternalMACs()); !st.ExternalMAC.IsZero() {
			t.Errorf("got %s", st.ExternalMAC)
		}
	})
	t.Run("a worker's physical bridge has no controller", func(t *testing.T) {
		db := state.New()
		n := *node
		n.Type = model.NodeWorker
		apply(t, db, &n)
		up(db, 1, 2)
		if st := decide.Node(db.Snapshot(), &n, false, decide.NewExternalMACs()); st.State != model.NodeComplete {
			t.Errorf("got %s", st.State)
		}
	})
}
