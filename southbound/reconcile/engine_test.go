package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/oftest"
)

func TestRulesComeAndGoWithTheirOwner(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", rule(t, 1, drop1), rule(t, 1, `table=0,priority=5,in_port="p1",actions=output:"p1"`))
	holds(t, s, drop1, "table=0,priority=5,in_port=1,actions=output:1")
	w.want("a", rule(t, 1, drop2))
	holds(t, s, drop2)
	w.want("a")
	holds(t, s)
}

func TestNothingIsSentWhenNothingDiffers(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", rule(t, 1, drop1), rule(t, 1, `table=0,priority=5,in_port="p1",actions=output:"p1"`))
	w.wantSet("g", flow.Set{
		Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect, Buckets: []flow.Bucket{{Weight: 1, Actions: []flow.Action{flow.Output{Port: flow.NamedPort("p1")}}}}}},
		Rules:  []flow.Rule{rule(t, 1, fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", flow.GroupIDMin+1))},
	})
	w.settled()
	before := s.Counts()
	if before.FlowMods != 3 || before.GroupMods != 1 {
		t.Fatalf("%+v", before)
	}
	for range 3 {
		w.touch("a", "g")
	}
	s.Disconnect()
	until(t, "the switch is read again", func() bool { return s.Counts().FlowQueries > before.FlowQueries })
	w.settled()
	queries := s.Counts().FlowQueries
	w.takeOver()
	until(t, "the new leader has read the switch", func() bool { return s.Counts().FlowQueries > queries })
	w.settled()
	after := s.Counts()
	if after.FlowMods != before.FlowMods || after.GroupMods != before.GroupMods || after.Bundles != before.Bundles {
		t.Errorf("messages were sent: %+v, then %+v", before, after)
	}
}

func TestOwnRulesThatNobodyWantsGoAndForeignOnesStay(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.wantSet("a", flow.Set{
		Rules:  []flow.Rule{rule(t, 1, drop1)},
		Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 7, Type: flow.GroupSelect}},
	})
	w.settled()
	// The next leader's state names nothing of it.
	w.wishes.mu.Lock()
	clear(w.wishes.sets)
	w.wishes.mu.Unlock()
	w.takeOver()
	holds(t, s)
	until(t, "the group is gone", func() bool { return len(s.Groups()) == 0 })
}

func TestRuleDeletedByHandComesBackAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	var all []flow.Rule
	for i := range 200 {
		all = append(all, rule(t, 1, fmt.Sprintf("table=31,priority=100,ip,nw_dst=10.0.1.%d,actions=drop", i)))
	}
	w.want("a", all...)
	w.settled()
	for _, n := range []int{1, 200} { // one by one, and as an audit
		if got := s.RemoveFlows(func(r flow.Rule) bool { n--; return n >= 0 }); got == 0 {
			t.Fatal("nothing removed")
		}
		until(t, "all rules are back", func() bool { return len(s.Rules()) == 200 })
	}
}

func TestAuditFindsChangedActions(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FullAuditInterval = 100 * time.Millisecond })
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", rule(t, 1, `table=0,priority=5,in_port="p1",actions=output:"p1"`))
	w.settled()
	if err := s.ChangeFlows(func(flow.Rule, []byte) []byte { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := s.Rules()[0].String(); got != "table=0,priority=5,in_port=1,actions=drop" {
		t.Fatal(got)
	}
	holds(t, s, "table=0,priority=5,in_port=1,actions=output:1")
}

func TestPortsAreFollowedByName(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", rule(t, 1, `table=0,priority=5,in_port="p2",actions=output:"p1"`), rule(t, 1, drop1))
	holds(t, s, drop1) // adding doesn't wait for what others lack
	until(t, "the missing port shows", func() bool {
		ws := w.engine.Waiting(Filter{})
		return len(ws) == 1 && ws[0].Owner == "w/a" && ws[0].For == "port p2 on of:0000000000000001"
	})
	s.AddPort(7, "p2", true)
	holds(t, s, drop1, "table=0,priority=5,in_port=7,actions=output:1")
	s.RemovePort(7)
	s.AddPort(9, "p2", true)
	holds(t, s, drop1, "table=0,priority=5,in_port=9,actions=output:1")
}

func TestRuleWhosePortIsMissingAtTheTakeOverStays(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour })
	s := w.connect(oftest.New(1, "p1", "p2"))
	w.want("a", rule(t, 1, `table=0,priority=5,in_port="p2",actions=output:"p1"`))
	w.settled()
	before := s.Counts()
	s.Disconnect()
	s.RemovePort(2)
	w.takeOver()
	until(t, "the switch is read", func() bool { return s.Counts().FlowQueries > before.FlowQueries })
	until(t, "the port is missed", func() bool { return len(w.engine.Waiting(Filter{})) == 1 })
	s.AddPort(2, "p2", true)
	w.settled()
	if after := s.Counts(); after.FlowMods != before.FlowMods {
		t.Errorf("%d flow-mods were sent", after.FlowMods-before.FlowMods)
	}
}

func TestHoldOnDeletesEnds(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = 300 * time.Millisecond })
	s := w.connect(oftest.New(1, "p1", "p2"))
	w.want("a", rule(t, 1, `table=0,priority=5,in_port="p2",actions=output:"p1"`))
	w.settled()
	s.Disconnect()
	s.RemovePort(2)
	w.takeOver()
	holds(t, s)
}

func TestOfTwoClaimsTheSmallerOwnersStands(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	const pass = `table=31,priority=100,ip,nw_dst=10.0.0.1,actions=output:"p1"`
	const passed = "table=31,priority=100,ip,nw_dst=10.0.0.1,actions=output:1"
	w.want("b", rule(t, 1, drop1))
	holds(t, s, drop1)
	w.want("a", rule(t, 1, pass))
	holds(t, s, passed)
	view := func() string {
		var b strings.Builder
		for _, v := range w.engine.Rules(Filter{}) {
			fmt.Fprintf(&b, "%s %s %s; ", v.Owner, v.State, v.Reason)
		}
		return b.String()
	}
	until(t, "the conflict shows", func() bool { return view() == "w/a installed ; w/b conflict the rule of w/a stands; " })
	w.want("c", rule(t, 1, pass)) // agrees with what stands
	until(t, "agreement shows", func() bool {
		return view() == "w/a installed ; w/b conflict the rule of w/a stands; w/c installed ; "
	})
	w.want("a")
	holds(t, s, drop1)
	w.want("b")
	holds(t, s, passed)
	w.want("c")
	holds(t, s)
}

func TestGroupsComeFirstGoLastAndChangeInPlace(t *testing.T) {
	w := newWorld(t, nil)
	s := oftest.New(1, "p1", "p2")
	var order []string
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		order = append(order, fmt.Sprintf("%d/%d", m.Type, m.Command))
		return nil
	})
	w.connect(s)
	const id = flow.GroupIDMin + 1
	set := func(ports ...string) flow.Set {
		g := flow.Group{Switch: 1, ID: id, Type: flow.GroupSelect}
		for _, p := range ports {
			g.Buckets = append(g.Buckets, flow.Bucket{Weight: 1, Actions: []flow.Action{flow.Output{Port: flow.NamedPort(p)}}})
		}
		return flow.Set{Groups: []flow.Group{g}, Rules: []flow.Rule{rule(t, 1, fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", id))}}
	}
	w.wantSet("lb", set("p1"))
	w.settled()
	w.wantSet("lb", set("p1", "p2"))
	until(t, "the group has both buckets", func() bool { g := s.Groups(); return len(g) == 1 && len(g[0].Buckets) == 2 })
	w.settled()
	w.wantSet("lb", flow.Set{})
	until(t, "all is gone", func() bool { return len(s.Groups()) == 0 && len(s.Rules()) == 0 })
	// 15: group-mod, 14: flow-mod; 0 add, 1 modify, 2 delete of groups; 0 add, 3
	// delete of flows. The switch asks when a message is added to a bundle, and
	// again at the commit.
	if got := strings.Join(order, " "); got != "15/0 14/0 15/0 14/0 15/1 15/1 14/3 15/2 14/3 15/2" {
		t.Errorf("order %s", got)
	}
}

func TestRefusedOwnerIsSetAsideAndTheRestGoesIn(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = time.Hour })
	s := oftest.New(1, "p1")
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		if m.Rule.Priority == 666 {
			return &oftest.Refusal{Type: 5, Code: 1} // table full
		}
		return nil
	})
	w.connect(s)
	w.want("a", rule(t, 1, drop1))
	holds(t, s, drop1)
	// One plan, so one bundle: a gets something that is refused, b is right.
	w.wishes.mu.Lock()
	w.wishes.sets["w/a"] = flow.Set{Rules: []flow.Rule{rule(t, 1, "table=31,priority=666,ip,actions=drop")}}
	w.wishes.sets["w/b"] = flow.Set{Rules: []flow.Rule{rule(t, 1, drop2)}}
	w.wishes.mu.Unlock()
	w.touch("a", "b")
	holds(t, s, drop1, drop2) // a's old rule stays
	until(t, "the refusal shows", func() bool {
		for _, v := range w.engine.Rules(Filter{Owner: "w/a"}) {
			if v.State == StateRefused && strings.Contains(v.Reason, "TABLE_FULL") {
				return true
			}
		}
		return false
	})
	w.want("a", rule(t, 1, "table=31,priority=667,ip,actions=drop"))
	holds(t, s, "table=31,priority=667,ip,actions=drop", drop2)
}

func TestRefusedOwnerIsTriedAgain(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = 20 * time.Millisecond })
	s := oftest.New(1, "p1")
	refusals := 0
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		if refusals++; refusals <= 3 {
			return &oftest.Refusal{Type: 5, Code: 1, AtAdd: refusals == 2}
		}
		return nil
	})
	w.connect(s)
	w.want("a", rule(t, 1, drop1))
	holds(t, s, drop1)
}

func TestSwitchWithRulesOfTheOriginalIsLeftAlone(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.AuditInterval = 50 * time.Millisecond })
	s := oftest.New(1, "p1")
	w.end() // the rules of the original come from a controller of their own
	plant(t, s, 0x00b5_0000_1234_5678, rule(t, 1, "table=31,priority=40500,ip,nw_dst=10.0.0.9,actions=drop"))
	w.takeOver()
	w.connect(s)
	w.want("a", rule(t, 1, drop1))
	until(t, "the switch says why", func() bool {
		v := w.engine.Switches()
		return len(v) == 1 && strings.Contains(v[0].Blocked, "ONOS")
	})
	if n := len(s.Rules()); n != 1 {
		t.Errorf("%d rules", n)
	}
	s.RemoveFlows(func(flow.Rule) bool { return true })
	holds(t, s, drop1) // once they are gone, kvnet goes on
}

func TestManyRulesGoInSeveralBundles(t *testing.T) {
	w := newWorld(t, nil)
	s := oftest.New(1, "p1")
	var all []flow.Rule
	for i := range 25_000 {
		all = append(all, rule(t, 1, fmt.Sprintf("table=31,priority=100,ip,nw_dst=10.%d.%d.%d,actions=drop", i>>16, i>>8&255, i&255)))
	}
	w.want("a", all...)
	until(t, "all rules are planned", func() bool { return len(w.engine.Rules(Filter{})) == len(all) })
	w.connect(s)
	until(t, "all rules are there", func() bool { return s.Counts().FlowMods == 25_000 })
	w.settled()
	if b := s.Counts().Bundles; b != 3 {
		t.Errorf("%d bundles", b)
	}
}

func TestFullRecomputeFindsNothing(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FullAuditInterval = 30 * time.Millisecond })
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", rule(t, 1, drop1))
	holds(t, s, drop1)
	began := s.Counts().FlowQueries
	until(t, "audits ran", func() bool { return s.Counts().FlowQueries > began+4 })
	if n := w.differences(); n != 0 {
		t.Errorf("%v differences", n)
	}
}

func TestUnknownSwitchLosesOwnRulesOnly(t *testing.T) {
	w := newWorld(t, nil)
	s := oftest.New(5, "p1")
	plant(t, s, flow.CookieMark|77, rule(t, 5, drop1))
	plant(t, s, 0x77, rule(t, 5, drop2))
	w.connect(s)
	holds(t, s, drop2)
}
