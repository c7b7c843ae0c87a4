package reconcile

import (
	"fmt"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/oftest"
)

// rulesOf are n different rules for switch 1.
func rulesOf(t testing.TB, table, n int) []flow.Rule {
	t.Helper()
	out := make([]flow.Rule, n)
	for i := range out {
		out[i] = rule(t, 1, fmt.Sprintf("table=%d,priority=%d,ip,actions=drop", table, i+1))
	}
	return out
}

func TestAChangeThatIsSentWhileItIsEncodedIsOneBundle(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	w.want("z", rule(t, 1, drop1))
	w.settled()
	before := s.Counts().Bundles
	w.want("a", rulesOf(t, 40, maxBundle)...)
	w.settled()
	if n := s.Counts().Bundles - before; n != 1 {
		t.Errorf("%d bundles", n)
	}
}

func TestRefusalLateInALargeBundleLeavesNothingOfIt(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff = time.Hour })
	s := oftest.New(1)
	s.Refuse(full)
	w.connect(s)
	w.want("z", rule(t, 1, drop1))
	w.settled()
	w.want("a", rulesOf(t, 40, 5*portion)...) // one of them has priority 666
	w.refused("a")
	holds(t, s, drop1)
}

// A plan larger than a bundle: adds leave while it is under way, deletes don't.
func TestALargePlanBeginsToSendBeforeItEnds(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	w.want("b", rule(t, 1, drop1))
	w.settled()
	g := newGate("w/c")
	w.wishes.gate.Store(g)
	w.wishes.mu.Lock()
	w.wishes.sets["w/a"] = flow.Set{Rules: rulesOf(t, 40, maxBundle)}
	delete(w.wishes.sets, "w/b")
	w.wishes.sets["w/c"] = flow.Set{Rules: []flow.Rule{rule(t, 1, drop2)}}
	w.wishes.mu.Unlock()
	w.touch("a", "b", "c")
	<-g.reached
	until(t, "the adds so far", func() bool { return len(s.Rules()) == maxBundle+1 })
	close(g.open)
	w.settled()
	until(t, "the deletion", func() bool { return len(s.Rules()) == maxBundle+1 })
	for _, r := range s.Rules() {
		if r.String() == drop1 {
			t.Error("the rule that nobody wants is still there")
		}
	}
}

func TestALargePlanKeepsBackRulesOfGroupsThatAreStillToCome(t *testing.T) {
	e := New(Config{})
	e.complete.Store(true)
	x := newTarget(e, 1)
	claimAll := func(rules ...flow.Rule) {
		for _, r := range rules {
			x.setClaim(packKey(r.Table, r.Priority, &r.Match), claim{owner: "w/a", actions: r.Actions})
		}
	}
	toGroup := rule(t, 1, fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", flow.GroupIDMin+1))
	claimAll(rulesOf(t, 40, maxBundle)...)
	claimAll(toGroup)
	x.staged = true
	if !x.outgrown() {
		t.Fatal("the plan is not larger than a bundle")
	}
	if ops, _ := x.build(time.Now(), nil); len(ops) != maxBundle {
		t.Errorf("%d messages during the plan", len(ops))
	}
	if x.outgrown() {
		t.Error("what was taken counts again")
	}
	x.setGroup("w/a", flow.Group{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect})
	x.staged = false
	ops, _ := x.build(time.Now(), nil)
	if len(ops) != 2 || ops[0].kind != opGroupAdd || ops[1].kind != opFlowAdd {
		t.Errorf("%+v after the plan", ops)
	}
}

func TestDirtyCellsForgetThoseThatWereCleared(t *testing.T) {
	var d dirtyCells
	cells := make([]*cell, 5000)
	for i := range cells {
		cells[i] = &cell{}
		d.mark(cells[i])
		d.mark(cells[i])
	}
	before := d.all()
	for _, c := range cells[1:] {
		d.clear(c)
		d.clear(c)
	}
	if d.n != 1 || len(before) != len(cells) || before[4999] != cells[4999] {
		t.Errorf("%d marked, %d listed before", d.n, len(before))
	}
	d.mark(cells[7])
	if got := d.all(); len(got) != 2 || d.n != 2 || cap(d.list) > 10 {
		t.Errorf("%d listed, %d marked, room for %d", len(got), d.n, cap(d.list))
	}
	if cells[9].listed {
		t.Error("a cell that is not in the list has its mark")
	}
}
