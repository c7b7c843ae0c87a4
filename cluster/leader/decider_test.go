package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"kvnet/cluster/leader"
	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// ledger writes decisions straight into a state, unless the test makes it fail.
type ledger struct {
	db    *state.DB
	mu    sync.Mutex
	fail  func(call int) error
	calls int
}

func (l *ledger) Decide(_ context.Context, _ store.Term, ds []store.Decision) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.fail != nil {
		if err := l.fail(l.calls); err != nil {
			return 0, err
		}
	}
	var rev int64
	for _, d := range ds {
		o := d.New
		if o == nil {
			o = d.Old
		}
		now := l.db.Snapshot().Get(o.Kind(), o.Key())
		if (now == nil) != (d.Old == nil) || now != nil && *now.Stored() != *d.Old.Stored() {
			return 0, store.ErrConflict
		}
		rev = l.put(o.Kind(), o.Key(), d.New)
	}
	return rev, nil
}

// put writes an object as the store's watch does.
func (l *ledger) put(kind model.Kind, key string, o model.Object) int64 {
	rev := l.db.Snapshot().Revision() + 1
	if o != nil {
		m := o.Stored()
		m.Created, m.Modified = rev, rev
		if old := l.db.Snapshot().Get(kind, key); old != nil {
			m.Created = old.Stored().Created
		}
	}
	if err := l.db.Apply(rev, []state.Event{{Kind: kind, Key: key, Object: o}}); err != nil {
		panic(err)
	}
	return rev
}

func (l *ledger) client(o model.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(o.Kind(), o.Key(), o)
}
func (l *ledger) remove(k model.Kind, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(k, key, nil)
}

func decider(t *testing.T, change func(*leader.DeciderConfig)) (*ledger, *leader.Decider, <-chan error) {
	t.Helper()
	l := &ledger{db: state.New()}
	if err := l.db.Replace(1, nil); err != nil {
		t.Fatal(err)
	}
	c := leader.DeciderConfig{DB: l.db, Store: l}
	if change != nil {
		change(&c)
	}
	d, ended := run(t, c)
	return l, d, ended
}

// run has a decider work until the test ends.
func run(t *testing.T, c leader.DeciderConfig) (*leader.Decider, <-chan error) {
	t.Helper()
	d := leader.NewDecider(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- d.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return d, ended
}

func eventually(t *testing.T, db *state.DB, what string, ok func(state.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := db.Wait(ctx, ok); err != nil {
		t.Fatalf("not in time: %s", what)
	}
}

func gateway(name string, i int) *model.Node {
	return &model.Node{Hostname: name, Type: model.NodeGateway, ManagementIP: netip.MustParseAddr("192.0.2.1"),
		IntegrationBridge: model.DeviceID(fmt.Sprintf("of:%x", 0xa0+i)), TunnelBridge: model.DeviceID(fmt.Sprintf("of:%x", 0xb0+i))}
}

func connect(db *state.DB, ids ...model.DPID) {
	for _, d := range ids {
		db.SwitchConnected(model.Switch{DPID: d}, nil)
	}
}

func gatewayIs(router, name string) func(state.Snapshot) bool {
	return func(s state.Snapshot) bool { st := s.RouterStatus(router); return st != nil && st.Gateway == name }
}

func TestRoutersFollowTheirGateways(t *testing.T) {
	l, _, _ := decider(t, nil)
	l.client(&model.Router{Name: "r1"})
	eventually(t, l.db, "a zone without a gateway", func(s state.Snapshot) bool {
		st := s.RouterStatus("r1")
		return st != nil && st.Zone == 1 && st.Gateway == ""
	})
	l.client(gateway("gw1", 1))
	connect(l.db, 0xa1, 0xb1)
	eventually(t, l.db, "the first gateway", gatewayIs("r1", "gw1"))
	l.client(gateway("gw2", 2))
	connect(l.db, 0xa2, 0xb2)
	eventually(t, l.db, "the second node is complete", func(s state.Snapshot) bool { return s.NodeState("gw2") == model.NodeComplete })
	if !gatewayIs("r1", "gw1")(l.db.Snapshot()) {
		t.Error("a new gateway took the router")
	}
	l.db.SwitchDisconnected(0xa1, "dead")
	l.db.SwitchDisconnected(0xb1, "dead")
	eventually(t, l.db, "the second gateway", gatewayIs("r1", "gw2"))
	connect(l.db, 0xa1, 0xb1)
	eventually(t, l.db, "the first node is complete again", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeComplete })
	if !gatewayIs("r1", "gw2")(l.db.Snapshot()) {
		t.Error("a returning gateway took the router back")
	}
	l.remove(model.KindNode, "gw2")
	eventually(t, l.db, "the gateway that is left", gatewayIs("r1", "gw1"))
	l.remove(model.KindRouter, "r1")
	eventually(t, l.db, "the decision goes with its router", func(s state.Snapshot) bool {
		return s.Get(model.KindRouterStatus, "r1") == nil && s.Get(model.KindNodeStatus, "gw2") == nil
	})
}

func TestZonesAreGivenOutAgainAfterTheirRouterIsGone(t *testing.T) {
	l, _, _ := decider(t, func(c *leader.DeciderConfig) { c.ZoneBase = 100 })
	zone := func(name string, z uint16) {
		t.Helper()
		l.client(&model.Router{Name: name})
		eventually(t, l.db, fmt.Sprintf("zone %d for %s", z, name), func(s state.Snapshot) bool {
			st := s.RouterStatus(name)
			return st != nil && st.Zone == z
		})
	}
	zone("a", 101)
	zone("b", 102)
	l.remove(model.KindRouter, "a")
	eventually(t, l.db, "the decision is gone", func(s state.Snapshot) bool { return s.Get(model.KindRouterStatus, "a") == nil })
	zone("c", 101)
	zone("d", 103)
}

func TestEachGatewayHasAnExternalMACForItsLife(t *testing.T) {
	l, _, _ := decider(t, nil)
	has := func(node string, last byte) {
		t.Helper()
		eventually(t, l.db, fmt.Sprintf("%s at …:%02x", node, last), func(s state.Snapshot) bool {
			st := s.NodeStatus(node)
			return st != nil && st.ExternalMAC == model.MAC{0xfe, 0, 0, 0, 0, last}
		})
	}
	l.client(gateway("b", 2))
	has("b", 2)
	l.client(gateway("a", 1))
	has("a", 3)
	l.client(gateway("c", 3))
	has("c", 4)
	l.remove(model.KindNode, "a")
	eventually(t, l.db, "the decision is gone", func(s state.Snapshot) bool { return s.Get(model.KindNodeStatus, "a") == nil })
	l.client(gateway("d", 4))
	has("d", 3)
	connect(l.db, 0xa2, 0xb2)
	eventually(t, l.db, "the first is complete", func(s state.Snapshot) bool { return s.NodeState("b") == model.NodeComplete })
	l.db.SwitchDisconnected(0xa2, "cut off")
	eventually(t, l.db, "and lost", func(s state.Snapshot) bool { return s.NodeState("b") == model.NodeIncomplete })
	has("b", 2)
}

func TestGatewaysThatAreThereAlreadyGetTheirExternalMACsByAge(t *testing.T) {
	l, _, _ := decider(t, func(c *leader.DeciderConfig) {
		// A store of an earlier version: the statuses have no address, but that
		// of one gateway.
		older := &ledger{db: c.DB}
		for i, name := range []string{"z", "y", "x"} {
			older.client(gateway(name, i+1))
			st := &model.NodeStatus{Hostname: name, Life: c.DB.Snapshot().Node(name).Created, State: model.NodeComplete}
			if name == "y" {
				st.ExternalMAC = model.MAC{0xfe, 0, 0, 0, 0, 3}
			}
			older.client(st)
		}
	})
	eventually(t, l.db, "all have one", func(s state.Snapshot) bool {
		for i, name := range []string{"z", "y", "x"} {
			if st := s.NodeStatus(name); st == nil || st.ExternalMAC[5] != byte(2+i) {
				return false
			}
		}
		return true
	})
}

func TestBalancerKeepsItsGroupForLife(t *testing.T) {
	l, _, _ := decider(t, nil)
	l.client(&model.LoadBalancer{Name: "lb"})
	var id uint32
	eventually(t, l.db, "a group", func(s state.Snapshot) bool {
		st := s.LoadBalancerStatus("lb")
		if st != nil {
			id = st.GroupID
		}
		return st != nil
	})
	l.client(&model.LoadBalancer{Name: "lb", NetworkID: "other"})
	l.client(&model.LoadBalancer{Name: "lb2"})
	eventually(t, l.db, "another group", func(s state.Snapshot) bool { st := s.LoadBalancerStatus("lb2"); return st != nil && st.GroupID != id })
	if l.db.Snapshot().LoadBalancerStatus("lb").GroupID != id {
		t.Error("the group changed")
	}
}

func TestConflictsAndFaultsAreTriedAgain(t *testing.T) {
	l, _, _ := decider(t, nil)
	l.mu.Lock()
	l.fail = func(call int) error {
		switch {
		case call <= 2:
			return store.ErrConflict
		case call <= 4:
			return store.ErrUnavailable
		}
		return nil
	}
	l.mu.Unlock()
	l.client(&model.Router{Name: "r1"})
	eventually(t, l.db, "the decision", func(s state.Snapshot) bool { return s.RouterStatus("r1") != nil })
}

func TestDecidingEndsWithTheTerm(t *testing.T) {
	l, _, ended := decider(t, nil)
	l.mu.Lock()
	l.fail = func(int) error { return store.ErrNotLeader }
	l.mu.Unlock()
	l.client(&model.Router{Name: "r1"})
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrNotLeader) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}

func TestLearnedMACIsStoredForItsPeerOnly(t *testing.T) {
	l, d, _ := decider(t, nil)
	ip, mac := netip.MustParseAddr("172.16.0.1"), model.MAC{2, 0, 0, 0, 0, 9}
	l.client(&model.Router{Name: "r1", Peer: &model.PeerRouter{IP: ip}})
	eventually(t, l.db, "a decision", func(s state.Snapshot) bool { st := s.RouterStatus("r1"); return st != nil && st.PeerIP == ip })
	if err := d.Learned(t.Context(), "r1", netip.MustParseAddr("172.16.0.2"), mac); err != nil || !l.db.Snapshot().RouterStatus("r1").PeerMAC.IsZero() {
		t.Fatalf("the MAC of another address was stored: %v", err)
	}
	if err := d.Learned(t.Context(), "nobody", ip, mac); err != nil {
		t.Fatal(err)
	}
	if err := d.Learned(t.Context(), "r1", ip, mac); err != nil || l.db.Snapshot().RouterStatus("r1").PeerMAC != mac {
		t.Fatalf("the MAC was not stored: %v", err)
	}
}

func TestBridgeThatDoesNotComeBackCountsAsLostAfterTheGrace(t *testing.T) {
	l, _, _ := decider(t, func(c *leader.DeciderConfig) { c.Grace = 50 * time.Millisecond })
	n := gateway("gw1", 1)
	l.client(n)
	l.client(&model.NodeStatus{Hostname: "gw1", Life: n.Created, State: model.NodeComplete})
	eventually(t, l.db, "INCOMPLETE", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeIncomplete })
}

func TestRouterStaysOnItsOnlyGatewayForAShortLoss(t *testing.T) {
	only := func(lost time.Duration) *ledger {
		l, _, _ := decider(t, func(c *leader.DeciderConfig) { c.CutGrace, c.LostGrace = time.Millisecond, lost })
		l.client(&model.Router{Name: "r1"})
		l.client(gateway("gw1", 1))
		connect(l.db, 0xa1, 0xb1)
		eventually(t, l.db, "the gateway", gatewayIs("r1", "gw1"))
		return l
	}
	l := only(time.Hour)
	l.db.SwitchDisconnected(0xb1, "cut off")
	eventually(t, l.db, "INCOMPLETE", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeIncomplete })
	if !gatewayIs("r1", "gw1")(l.db.Snapshot()) {
		t.Error("the router left at once, though there is nowhere to go")
	}
	connect(l.db, 0xb1)
	eventually(t, l.db, "COMPLETE again", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeComplete })
	if !gatewayIs("r1", "gw1")(l.db.Snapshot()) {
		t.Error("the router left")
	}
	l = only(time.Millisecond)
	l.db.SwitchDisconnected(0xb1, "cut off for good")
	eventually(t, l.db, "no gateway after the grace", gatewayIs("r1", ""))
}

// beside has the router r1 on the gateway gw1, with gw2 beside it.
func beside(t *testing.T, change func(*leader.DeciderConfig)) *ledger {
	t.Helper()
	l, _, _ := decider(t, change)
	l.client(gateway("gw1", 1))
	connect(l.db, 0xa1, 0xb1)
	l.client(&model.Router{Name: "r1"})
	eventually(t, l.db, "the gateway", gatewayIs("r1", "gw1"))
	l.client(gateway("gw2", 2))
	connect(l.db, 0xa2, 0xb2)
	eventually(t, l.db, "another gateway", func(s state.Snapshot) bool { return s.NodeState("gw2") == model.NodeComplete })
	return l
}

func TestRouterStaysOnAGatewayWhileOneOfItsSwitchesIsThere(t *testing.T) {
	l := beside(t, func(c *leader.DeciderConfig) { c.CutGrace = time.Hour })

	cut := func(id model.DPID) {
		t.Helper()
		l.db.SwitchDisconnected(id, "cut off")
		eventually(t, l.db, "INCOMPLETE", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeIncomplete })
		// What is decided after the cut shows that the router was decided.
		l.client(&model.Router{Name: "after"})
		eventually(t, l.db, "another decision", gatewayIs("after", "gw2"))
		l.remove(model.KindRouter, "after")
		if !gatewayIs("r1", "gw1")(l.db.Snapshot()) {
			t.Errorf("the router left, though only switch %s was cut off", id)
		}
	}
	for _, id := range []model.DPID{0xa1, 0xb1} {
		cut(id)
		connect(l.db, id)
		eventually(t, l.db, "COMPLETE again", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeComplete })
	}
	cut(0xa1)
	l.db.SwitchDisconnected(0xb1, "dead")
	eventually(t, l.db, "the other gateway", gatewayIs("r1", "gw2"))
}

func TestRouterLeavesAGatewayOneSwitchOfWhichStaysAway(t *testing.T) {
	l := beside(t, func(c *leader.DeciderConfig) { c.CutGrace, c.LostGrace = 50*time.Millisecond, time.Hour })
	l.db.SwitchDisconnected(0xa1, "gone for good")
	eventually(t, l.db, "the other gateway", gatewayIs("r1", "gw2"))
}

func TestRouterOnALostGatewayGoesToTheFirstThatComes(t *testing.T) {
	l, _, _ := decider(t, func(c *leader.DeciderConfig) { c.CutGrace, c.LostGrace = 50*time.Millisecond, time.Hour })
	l.client(gateway("gw1", 1))
	connect(l.db, 0xa1, 0xb1)
	l.client(&model.Router{Name: "r1"})
	eventually(t, l.db, "the gateway", gatewayIs("r1", "gw1"))
	l.db.SwitchDisconnected(0xa1, "dead")
	l.db.SwitchDisconnected(0xb1, "dead")
	eventually(t, l.db, "INCOMPLETE", func(s state.Snapshot) bool { return s.NodeState("gw1") == model.NodeIncomplete })
	l.client(gateway("gw2", 2))
	connect(l.db, 0xa2, 0xb2)
	eventually(t, l.db, "the other gateway", gatewayIs("r1", "gw2"))
}

// A switch that has not come yet since the leader took over is not one that is gone,
// until it had its time.
func TestRouterStaysOnACutGatewayUntilItsOtherSwitchHadTimeToCome(t *testing.T) {
	for grace, want := range map[time.Duration]string{time.Hour: "gw1", time.Millisecond: "gw2"} {
		n, m := gateway("gw1", 1), gateway("gw2", 2)
		l := &ledger{db: state.New()}
		if err := l.db.Replace(1, nil); err != nil {
			t.Fatal(err)
		}
		l.client(n)
		l.client(m)
		l.client(&model.Router{Name: "r1"})
		l.client(&model.NodeStatus{Hostname: "gw1", Life: n.Created, State: model.NodeIncomplete})
		l.client(&model.NodeStatus{Hostname: "gw2", Life: m.Created, State: model.NodeComplete})
		l.client(&model.RouterStatus{Name: "r1", Life: l.db.Snapshot().Router("r1").Created, Gateway: "gw1", Zone: 1})
		connect(l.db, 0xa2, 0xb2)
		run(t, leader.DeciderConfig{DB: l.db, Store: l, Grace: grace, CutGrace: time.Hour})
		l.client(&model.Router{Name: "after"})
		eventually(t, l.db, "another decision", gatewayIs("after", "gw2"))
		eventually(t, l.db, "on "+want, gatewayIs("r1", want))
	}
}
