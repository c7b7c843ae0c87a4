package reconcile

import (
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/oftest"
)

func TestNumberThatPassesToAnotherPortKeepsItsRule(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Nanosecond })
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", rule(t, 1, `table=0,priority=5,in_port="p1",actions=drop`))
	w.want("b", rule(t, 1, `table=0,priority=5,in_port="p3",actions=drop`))
	holds(t, s, "table=0,priority=5,in_port=1,actions=drop")
	before := s.Counts()
	// The planner sees the end of p1 and the beginning of p3 as one.
	g := newGate("w/x")
	w.wishes.gate.Store(g)
	w.touch("x")
	<-g.reached
	s.RemovePort(1)
	s.AddPort(1, "p3", true)
	until(t, "the state knows the port", func() bool { return w.db.Snapshot().SwitchPort(1, "p3") != nil })
	close(g.open)
	until(t, "the change is taken in", func() bool {
		ws := w.engine.Waiting(Filter{})
		return len(ws) == 1 && ws[0].Owner == "w/a"
	})
	until(t, "the rule has its new owner", func() bool {
		vs := w.engine.Rules(Filter{Owner: "w/b"})
		return len(vs) == 1 && vs[0].State == StateInstalled
	})
	holds(t, s, "table=0,priority=5,in_port=1,actions=drop")
	if after := s.Counts(); after.FlowMods != before.FlowMods {
		t.Errorf("%d flow-mods were sent", after.FlowMods-before.FlowMods)
	}
}

func TestPortThatComesBackWithAnotherNumberIsFollowedWhileDeletesAreHeld(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour })
	s := w.connect(oftest.New(1, "p1", "p2"))
	w.want("a", rule(t, 1, `table=0,priority=5,in_port="p2",actions=output:"p1"`))
	w.settled()
	s.RemovePort(2)
	until(t, "the port is missed", func() bool { return len(w.engine.Waiting(Filter{})) == 1 })
	holds(t, s, "table=0,priority=5,in_port=2,actions=output:1")
	s.AddPort(9, "p2", true)
	holds(t, s, "table=0,priority=5,in_port=9,actions=output:1")
}

func TestGroupThatIsWantedAgainWhileItsDeletionIsHeldStays(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour })
	s := w.connect(oftest.New(1, "p1"))
	set := flow.Set{Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect}}}
	w.wantSet("g", set)
	w.settled()
	before := s.Counts()
	w.want("u", rule(t, 1, `table=0,priority=5,in_port="p9",actions=drop`))
	w.wishes.mu.Lock()
	delete(w.wishes.sets, "w/g")
	w.wishes.mu.Unlock()
	w.takeOver()
	until(t, "the switch is read", func() bool { return s.Counts().GroupQueries > before.GroupQueries })
	until(t, "the group is orphaned", func() bool {
		x := w.engine.existing(1)
		if x == nil {
			return false
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.synced
	})
	w.wantSet("g", set)
	until(t, "the group is its owner's again", func() bool {
		vs := w.engine.Rules(Filter{Owner: "w/g"})
		return len(vs) == 1 && vs[0].State == StateInstalled
	})
	s.AddPort(9, "p9", true)
	w.settled()
	if after := s.Counts(); after.GroupMods != before.GroupMods {
		t.Errorf("%d group-mods were sent", after.GroupMods-before.GroupMods)
	}
}

func TestHoldOnDeletesKeepsTheRulesOfAllOwners(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour })
	s := w.connect(oftest.New(1, "p1", "p2"))
	const waits = `table=0,priority=5,in_port="p2",actions=output:"p1"`
	w.want("a", rule(t, 1, waits))
	w.want("b", rule(t, 1, drop1))
	w.want("c", rule(t, 1, drop2))
	w.settled()
	s.Disconnect()
	s.RemovePort(2)
	w.wishes.mu.Lock()
	delete(w.wishes.sets, "w/b")
	w.wishes.mu.Unlock()
	w.takeOver()
	until(t, "the port is missed", func() bool { return len(w.engine.Waiting(Filter{})) == 1 })
	w.want("c") // nor is anything deleted that ends now
	const third = "table=31,priority=100,ip,nw_dst=10.0.0.3,actions=drop"
	w.want("d", rule(t, 1, third)) // adding never waits
	held := []string{"table=0,priority=5,in_port=2,actions=output:1", drop1, drop2, third}
	holds(t, s, held...)
	time.Sleep(30 * time.Millisecond) // a delete would be there by now
	holds(t, s, held...)
	s.AddPort(2, "p2", true)
	holds(t, s, "table=0,priority=5,in_port=2,actions=output:1", third)
}
