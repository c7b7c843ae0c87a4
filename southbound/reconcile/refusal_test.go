package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/wire"
)

const tooMuch = "table=31,priority=666,ip,actions=drop"

// full refuses rules of priority 666.
func full(m oftest.Mod) *oftest.Refusal {
	if m.Rule.Priority == 666 {
		return &oftest.Refusal{Type: 5, Code: 1}
	}
	return nil
}

// refusing is a world with a switch that has no room for some rules. An owner that
// was refused is not tried again.
func refusing(t *testing.T) (*world, *oftest.Switch) {
	t.Helper()
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = time.Hour })
	s := oftest.New(1)
	s.Refuse(full)
	return w, w.connect(s)
}

func (w *world) refused(name string) {
	w.t.Helper()
	until(w.t, "the refusal of "+name, func() bool {
		for _, v := range w.current().Rules(Filter{Owner: flow.Owner("w/" + name)}) {
			if v.State == StateRefused {
				return true
			}
		}
		return false
	})
}

func TestOldRulesOfARefusedOwnerOutliveAConnection(t *testing.T) {
	w, s := refusing(t)
	w.want("a", rule(t, 1, drop1))
	holds(t, s, drop1)
	w.want("a", rule(t, 1, tooMuch))
	w.refused("a")
	queries := s.Counts().FlowQueries
	s.Disconnect()
	until(t, "the switch is read again", func() bool { return s.Counts().FlowQueries > queries })
	w.want("b", rule(t, 1, drop2))
	w.refused("a")
	holds(t, s, drop1, drop2)
}

func TestOldGroupOfARefusedOwnerOutlivesAConnection(t *testing.T) {
	w, s := refusing(t)
	uses := fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", flow.GroupIDMin+1)
	w.wantSet("a", flow.Set{Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect}}, Rules: []flow.Rule{rule(t, 1, uses)}})
	w.settled()
	w.want("a", rule(t, 1, tooMuch))
	w.refused("a")
	queries := s.Counts().FlowQueries
	s.Disconnect()
	until(t, "the switch is read again", func() bool { return s.Counts().FlowQueries > queries })
	w.want("b", rule(t, 1, drop2))
	w.refused("a")
	holds(t, s, uses, drop2)
}

func TestOwnerRefusedByOneSwitchIsServedOnAnother(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = time.Hour })
	s1, s2 := oftest.New(1), oftest.New(2)
	s1.Refuse(full)
	w.connect(s1)
	w.connect(s2)
	w.want("a", rule(t, 1, drop1), rule(t, 2, drop1))
	holds(t, s1, drop1)
	holds(t, s2, drop1)
	w.want("a", rule(t, 1, tooMuch), rule(t, 2, tooMuch))
	holds(t, s2, tooMuch)
	w.refused("a")
	holds(t, s1, drop1)
}

func TestRefusedGroupKeepsItsOwnersOldRules(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = time.Hour })
	s := oftest.New(1)
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		if m.Type == wire.TypeGroupMod {
			return &oftest.Refusal{Type: 6, Code: 3} // out of groups
		}
		return nil
	})
	w.connect(s)
	w.want("a", rule(t, 1, drop1))
	holds(t, s, drop1)
	w.wantSet("a", flow.Set{
		Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect}},
		Rules:  []flow.Rule{rule(t, 1, fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", flow.GroupIDMin+1))},
	})
	w.refused("a")
	w.want("b", rule(t, 1, drop2))
	holds(t, s, drop1, drop2)
	s.Refuse(nil)
	w.want("a", rule(t, 1, tooMuch)) // a change of the owner is tried at once
	holds(t, s, tooMuch, drop2)
}

func TestRefusalIsForgottenOnceTheSwitchAgrees(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = 5 * time.Millisecond })
	s := oftest.New(1)
	var refusals atomic.Int32
	s.Refuse(func(oftest.Mod) *oftest.Refusal {
		if refusals.Add(1) <= 3 {
			return &oftest.Refusal{Type: 6, Code: 3}
		}
		return nil
	})
	w.connect(s)
	w.wantSet("a", flow.Set{Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect}}})
	w.settled()
	until(t, "nobody is set aside", func() bool {
		x := w.engine.existing(1)
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.aside) == 0
	})
}

func TestManyRefusalsAreNoSilence(t *testing.T) {
	old := ioTimeout
	ioTimeout = 400 * time.Millisecond
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = time.Hour })
	t.Cleanup(func() { w.end(); ioTimeout = old })
	s := newFake(1)
	var closed atomic.Int32
	s.closed = func() { closed.Add(1) }
	var left atomic.Int32
	left.Store(30)
	s.bundle = func(ctx context.Context, msgs []openflow.Message) error {
		select {
		case <-time.After(20 * time.Millisecond): // 30 of them take longer than one may
		case <-ctx.Done():
			return ctx.Err()
		}
		if left.Add(-1) >= 0 {
			return &openflow.BundleError{Refused: []openflow.Refusal{{Index: 0, Type: 5, Code: 1}}}
		}
		return nil
	}
	for i := range 31 {
		w.want(fmt.Sprintf("o%02d", i), rule(t, 1, fmt.Sprintf("table=31,priority=%d,ip,actions=drop", 100+i)))
	}
	until(t, "all is planned", func() bool { return len(w.engine.Rules(Filter{})) == 31 })
	w.engine.MasterUp(s)
	until(t, "the last is installed", func() bool {
		for _, v := range w.engine.Rules(Filter{}) {
			if v.State == StateInstalled {
				return true
			}
		}
		return false
	})
	if n := closed.Load(); n != 0 {
		t.Errorf("the session was given up %d times", n)
	}
}

func TestGroupOfTheSmallerOwnerStandsAndTheOtherCounts(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	group := func(weight uint16) flow.Set {
		return flow.Set{Groups: []flow.Group{{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect,
			Buckets: []flow.Bucket{{Weight: weight, Actions: []flow.Action{flow.Output{Port: flow.NumberedPort(9)}}}}}}}
	}
	weight := func(n uint16) func() bool {
		return func() bool { g := s.Groups(); return len(g) == 1 && g[0].Buckets[0].Weight == n }
	}
	conflicts := func() int {
		x := w.engine.existing(1)
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.conflicts
	}
	w.wantSet("b", group(2))
	until(t, "the group of b", weight(2))
	w.wantSet("a", group(1))
	until(t, "the group of a", weight(1))
	if n := conflicts(); n != 1 {
		t.Errorf("%d conflicts", n)
	}
	w.wantSet("a", flow.Set{})
	until(t, "the group of b again", weight(2))
	if n := conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
	w.wantSet("b", flow.Set{})
	until(t, "no group", func() bool { return len(s.Groups()) == 0 })
}
