package reconcile

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

// byHand adds a rule as somebody else would. It goes through kvnet's session,
// because a simulated switch has no other way in.
func (w *world) byHand(s *oftest.Switch, cookie uint64, r flow.Rule) {
	w.t.Helper()
	e, err := openflow.EncodeRule(r)
	if err == nil {
		err = w.server.Session(s.DPID()).Bundle(w.t.Context(), []openflow.Message{openflow.AddFlow(e, cookie)})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// cookieAt is the cookie of the switch's only rule of a text.
func cookieAt(t *testing.T, s *oftest.Switch, text string) uint64 {
	t.Helper()
	for i, r := range s.Rules() {
		if r.String() == text {
			return s.Cookies()[i]
		}
	}
	t.Fatalf("no rule %s", text)
	return 0
}

func TestRuleAddedAgainWithItsCookieAndAnotherPriorityGoes(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.AuditInterval = 30 * time.Millisecond })
	s := w.connect(oftest.New(1))
	w.want("a", rule(t, 1, drop1))
	holds(t, s, drop1)
	before := s.Counts().FlowMods
	w.byHand(s, cookieAt(t, s, drop1), rule(t, 1, "table=31,priority=101,ip,nw_dst=10.0.0.1,actions=drop"))
	until(t, "the copy is deleted", func() bool { return s.Counts().FlowMods == before+2 })
	holds(t, s, drop1)
}

func TestRuleInThePlaceOfAnotherIsOverwrittenAndNotDeleted(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.AuditInterval = 30 * time.Millisecond })
	s := w.connect(oftest.New(1))
	w.want("a", rule(t, 1, drop1), rule(t, 1, drop2))
	holds(t, s, drop1, drop2)
	var strict atomic.Int32
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		if m.Command == oftest.FlowDeleteStrict {
			strict.Add(1)
		}
		return nil
	})
	right := cookieAt(t, s, drop2)
	w.byHand(s, cookieAt(t, s, drop1), rule(t, 1, drop2))
	until(t, "the rule has its own cookie again", func() bool {
		for _, c := range s.Cookies() {
			if c == right {
				return true
			}
		}
		return false
	})
	w.settled()
	if strict.Load() != 0 {
		t.Error("the rule was deleted after it was put right")
	}
}

func TestGroupChangedByHandHeals(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.AuditInterval = 30 * time.Millisecond })
	s := w.connect(oftest.New(1, "p1", "p2"))
	group := func(ports ...string) flow.Group {
		g := flow.Group{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect}
		for _, p := range ports {
			g.Buckets = append(g.Buckets, flow.Bucket{Weight: 1, Actions: []flow.Action{flow.Output{Port: flow.NamedPort(p)}}})
		}
		return g
	}
	w.wantSet("g", flow.Set{Groups: []flow.Group{group("p1", "p2")}})
	w.settled()
	send := func(m openflow.Message, err error) {
		t.Helper()
		if err == nil {
			err = w.server.Session(1).Bundle(t.Context(), []openflow.Message{m})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	other := group()
	other.Buckets = []flow.Bucket{{Weight: 7, Actions: []flow.Action{flow.Output{Port: flow.NumberedPort(2)}}}}
	whole := func() bool { g := s.Groups(); return len(g) == 1 && len(g[0].Buckets) == 2 }
	send(openflow.ModifyGroup(other))
	until(t, "the buckets are right again", whole)
	send(openflow.DeleteGroup(flow.GroupIDMin+1), nil)
	until(t, "the group is there again", whole)
	stranger := flow.Group{ID: 77, Type: flow.GroupSelect}
	send(openflow.AddGroup(stranger))
	spare := flow.Group{ID: flow.GroupIDMin + 99, Type: flow.GroupSelect}
	send(openflow.AddGroup(spare))
	until(t, "the group that nobody wants is gone, the stranger's is not", func() bool {
		g := s.Groups()
		return len(g) == 2 && g[0].ID == 77
	})
}

// A switch may report the end of a rule before the worker knows that it was added.
func TestRemovalThatOvertakesTheAnswerToItsAddHeals(t *testing.T) {
	w := newWorld(t, nil)
	s := newFake(1)
	r := rule(t, 1, drop1)
	enc, err := openflow.EncodeRule(r)
	if err != nil {
		t.Fatal(err)
	}
	var bundles atomic.Int32
	s.bundle = func(context.Context, []openflow.Message) error {
		if bundles.Add(1) == 1 {
			w.engine.FlowRemoved(s, cookieOf(enc), false)
		}
		return nil
	}
	w.want("a", r)
	w.engine.MasterUp(s)
	until(t, "the rule is put back", func() bool { return bundles.Load() == 2 })
}

// A change that is computed but leaves a rule as it is must not hide its removal.
func TestRemovalDuringAPlanHeals(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	w.want("a", rule(t, 1, drop1))
	w.settled()
	g := newGate("w/c")
	w.wishes.gate.Store(g)
	w.wishes.mu.Lock()
	w.wishes.sets["w/b"] = w.wishes.sets["w/a"] // agrees
	w.wishes.sets["w/0"] = w.wishes.sets["w/a"] // agrees, and stands
	w.wishes.mu.Unlock()
	w.touch("0", "b", "c")
	<-g.reached
	s.RemoveFlows(func(flow.Rule) bool { return true })
	time.Sleep(20 * time.Millisecond) // let the report come first, as is likely
	close(g.open)
	holds(t, s, drop1)
}
