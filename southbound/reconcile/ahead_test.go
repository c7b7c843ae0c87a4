package reconcile

import (
	"fmt"
	"sync"
	"sync/atomic"
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
	w, s := refusing(t)
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

// early is a world in which the plan stands still after its first owner, many of
// whose rules have left for the switch. goOn lets it end.
func early(t *testing.T) (w *world, s *oftest.Switch, goOn func()) {
	t.Helper()
	w = newWorld(t, nil)
	var taken atomic.Int64
	s = oftest.New(1)
	s.Refuse(func(oftest.Mod) *oftest.Refusal { taken.Add(1); return nil })
	w.connect(s)
	w.want("b", rule(t, 1, drop1))
	w.settled()
	g := newGate("w/c")
	w.wishes.gate.Store(g)
	w.wishes.mu.Lock()
	w.wishes.sets["w/a"] = flow.Set{Rules: rulesOf(t, 40, 3*portion)}
	w.wishes.sets["w/c"] = flow.Set{Rules: []flow.Rule{rule(t, 1, drop2)}}
	w.wishes.mu.Unlock()
	taken.Store(0)
	w.touch("a", "c")
	<-g.reached
	until(t, "the first adds are with the switch", func() bool { return taken.Load() > 0 })
	return w, s, sync.OnceFunc(func() { close(g.open) })
}

func TestWhatLeavesDuringAPlanIsInForceWithTheWholePlan(t *testing.T) {
	w, s, goOn := early(t)
	defer goOn()
	holds(t, s, drop1)
	before := s.Counts().Bundles
	goOn()
	w.settled()
	if n := s.Counts().Bundles - before; n != 1 {
		t.Errorf("%d bundles", n)
	}
}

func TestConnectionLostDuringAPlanOfWhichAPartHasLeft(t *testing.T) {
	w, s, goOn := early(t)
	defer goOn()
	connections := s.Counts().FlowQueries
	s.Disconnect()
	until(t, "the switch is read anew", func() bool { return s.Counts().FlowQueries > connections })
	goOn()
	w.settled()
	if n := len(s.Rules()); n != 3*portion+2 {
		t.Errorf("%d rules", n)
	}
}

func TestLeadLostDuringAPlanOfWhichAPartHasLeft(t *testing.T) {
	w, s, goOn := early(t)
	ended := make(chan struct{})
	go func() { w.end(); close(ended) }()
	goOn()
	<-ended
	w.takeOver()
	w.settled()
	if n := len(s.Rules()); n != 3*portion+2 {
		t.Errorf("%d rules", n)
	}
}

// The switch refuses a bundle while the next one is on its way to it.
func TestRefusedBundleLeavesNothingOfTheNextOneBehind(t *testing.T) {
	w, s := refusing(t)
	w.want("z", rule(t, 1, drop1))
	w.settled()
	bad := rulesOf(t, 40, maxBundle) // one of them has priority 666
	good := rulesOf(t, 41, maxBundle/2)
	for i := range good {
		good[i].Priority += 1000
	}
	w.wishes.mu.Lock()
	w.wishes.sets["w/a"], w.wishes.sets["w/b"] = flow.Set{Rules: bad}, flow.Set{Rules: good}
	w.wishes.mu.Unlock()
	w.touch("a", "b")
	w.refused("a")
	until(t, "the other owner's rules", func() bool { return len(s.Rules()) == len(good)+1 })
	for _, r := range s.Rules() {
		if r.Table == 40 {
			t.Fatalf("of the refused owner there is %s", r)
		}
	}
}

// The port of a rule that has left already goes before the plan ends.
func TestRuleThatHasLeftAndLosesItsPortIsDeleted(t *testing.T) {
	e := New(Config{DeleteHold: time.Nanosecond})
	e.complete.Store(true)
	x := newTarget(e, 1)
	x.setPort("p", 7, true)
	rules := append(rulesOf(t, 40, portion), rule(t, 1, "table=40,priority=9999,ip,actions=output:p"))
	for _, r := range rules {
		x.setClaim(packKey(r.Table, r.Priority, &r.Match), claim{owner: "w/a", actions: r.Actions})
	}
	x.staged = true
	out := &outgoing{}
	if !x.gather(time.Now(), out) || len(out.ops) != len(rules) {
		t.Fatalf("%d messages have left", len(out.ops))
	}
	x.setPort("p", 0, false)
	x.staged = false
	x.build(time.Now(), out)
	if len(out.ops) != len(rules) {
		t.Errorf("%d messages at the end of the plan", len(out.ops))
	}
	x.done(out.ops)
	last := &outgoing{}
	x.build(time.Now(), last)
	if len(last.ops) != 1 || last.ops[0].kind != opFlowDelete {
		t.Errorf("afterwards %+v", last.ops)
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
	claimAll(toGroup)
	claimAll(rulesOf(t, 40, maxBundle-1)...)
	x.staged = true
	out := &outgoing{}
	if !x.gather(time.Now(), out) || len(out.ops) != maxBundle-1 {
		t.Errorf("%d messages during the plan", len(out.ops))
	}
	out = &outgoing{}
	if x.gather(time.Now(), out) {
		t.Errorf("what was taken counts again: %d", len(out.ops))
	}
	x.setGroup("w/a", flow.Group{Switch: 1, ID: flow.GroupIDMin + 1, Type: flow.GroupSelect})
	x.staged = false
	x.build(time.Now(), out)
	if ops := out.ops; len(ops) != 2 || ops[0].kind != opGroupAdd || ops[1].kind != opFlowAdd {
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
