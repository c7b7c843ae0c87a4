package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

func TestAChangeIsOneBundleThoughTheWorkerIsAwake(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	w.want("z", rule(t, 1, "table=31,priority=1,actions=drop"))
	w.settled()
	before := s.Counts()
	g := newGate("w/b")
	w.wishes.gate.Store(g)
	w.wishes.mu.Lock()
	w.wishes.sets["w/a"] = flow.Set{Rules: []flow.Rule{rule(t, 1, drop1)}}
	w.wishes.sets["w/b"] = flow.Set{Rules: []flow.Rule{rule(t, 1, drop2)}}
	w.wishes.mu.Unlock()
	w.touch("a", "b")
	<-g.reached
	for range 10 {
		w.engine.existing(1).wake()
		time.Sleep(2 * time.Millisecond)
	}
	close(g.open)
	w.settled()
	if n := s.Counts().Bundles - before.Bundles; n != 1 {
		t.Errorf("%d bundles", n)
	}
}

func TestARuleOfAnotherPriorityComesBeforeTheOldOneGoesInOneBundle(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	const low = "table=32,priority=40400,ip,nw_src=10.0.0.1,actions=output:1"
	const high = "table=32,priority=41500,ip,nw_src=10.0.0.1,actions=output:1"
	w.want("a", rule(t, 1, low))
	holds(t, s, low)
	var mu sync.Mutex
	var commands []uint16
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(commands, m.Command) { // asked for again at the commit
			commands = append(commands, m.Command)
		}
		return nil
	})
	before := s.Counts().Bundles
	w.want("a", rule(t, 1, high))
	holds(t, s, high)
	w.settled()
	mu.Lock()
	defer mu.Unlock()
	if n := s.Counts().Bundles - before; n != 1 || !slices.Equal(commands, []uint16{oftest.FlowAdd, oftest.FlowDelete}) {
		t.Errorf("%d bundles with the commands %v", n, commands)
	}
}

func TestWorkerThatWaitedForAPlanGoesOnThoughThePlanChangedNothing(t *testing.T) {
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1))
	w.want("a", rule(t, 1, drop1))
	w.settled()
	g := newGate("w/b")
	w.wishes.gate.Store(g)
	w.touch("a", "b")
	<-g.reached
	s.RemoveFlows(func(flow.Rule) bool { return true })
	time.Sleep(20 * time.Millisecond)
	close(g.open)
	holds(t, s, drop1)
}

func TestAWaveWaitsForASwitchThatIsStillRead(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.WaveTimeout = time.Hour })
	s1, s2 := newFake(1), newFake(2)
	var mu sync.Mutex
	var log []string
	note := func(what string) func(context.Context, []openflow.Message) error {
		return func(context.Context, []openflow.Message) error {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, what)
			return nil
		}
	}
	s1.bundle, s2.bundle = note("s1"), note("s2")
	reading, read := make(chan struct{}, 1), make(chan struct{})
	s2.flows = func(ctx context.Context, _ openflow.FlowQuery) ([]openflow.FlowEntry, error) {
		reading <- struct{}{}
		select {
		case <-read:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}
	w.engine.MasterUp(s1)
	w.want("a", rule(t, 1, drop1))
	until(t, "the rule is on the first", func() bool { mu.Lock(); defer mu.Unlock(); return len(log) == 1 })
	w.engine.MasterUp(s2)
	<-reading
	w.want("a", rule(t, 2, drop1))
	until(t, "the move is planned", func() bool {
		vs := w.engine.Rules(Filter{Owner: "w/a"})
		return len(vs) == 1 && vs[0].Switch == 2
	})
	time.Sleep(20 * time.Millisecond)
	close(read)
	until(t, "the move is over", func() bool { mu.Lock(); defer mu.Unlock(); return len(log) == 3 })
	if got := fmt.Sprint(log); got != "[s1 s2 s1]" {
		t.Errorf("order %s", got)
	}
}

func TestTargetsOfSwitchesThatNeverCameAreForgotten(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 20 {
		w.want("a", rule(t, model.DPID(100+i), drop1))
	}
	w.want("a")
	until(t, "nothing is left", func() bool {
		w.engine.mu.Lock()
		defer w.engine.mu.Unlock()
		return len(w.engine.targets) == 0
	})
}

func TestLossOfTheRoleInMidBundleLeavesNothingToTheOldLeader(t *testing.T) {
	w := newWorld(t, nil)
	s := newFake(1)
	inside := make(chan struct{})
	var once sync.Once
	s.bundle = func(ctx context.Context, _ []openflow.Message) error {
		once.Do(func() { close(inside) })
		<-ctx.Done()
		return ctx.Err()
	}
	var closed atomic.Bool
	s.closed = func() { closed.Store(true) }
	w.want("a", rule(t, 1, drop1))
	old := w.engine
	old.MasterUp(s)
	<-inside
	w.end() // returns when all workers have ended
	if closed.Load() {
		t.Error("a session was given up because this server leads no longer")
	}
	for _, v := range old.Rules(Filter{}) {
		if v.State == StateInstalled {
			t.Errorf("%+v", v)
		}
	}
	old.MasterUp(newFake(2)) // a late event starts no worker
	w.mu.Lock()
	w.engine = New(w.cfg)
	w.mu.Unlock()
	w.lead()
	next := newFake(1)
	done := make(chan struct{})
	next.bundle = func(context.Context, []openflow.Message) error { close(done); return nil }
	w.current().MasterUp(next)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the next leader does not write")
	}
}

func TestSwitchThatIsLostInMidBundleIsReadAnew(t *testing.T) {
	w := newWorld(t, nil)
	w.want("a", rule(t, 1, drop1))
	s := newFake(1)
	gone := errors.New("connection reset")
	s.bundle = func(context.Context, []openflow.Message) error { return gone }
	s.closed = func() { go w.engine.SessionDown(s, gone) }
	w.engine.MasterUp(s)
	until(t, "the session is given up", func() bool {
		v := w.engine.Switches()
		return len(v) == 1 && v[0].LastError != ""
	})
	r := w.connect(oftest.New(1))
	holds(t, r, drop1)
}

func TestRestartSendsNothingWhenSwitchesComeOneByOneInAnyOrder(t *testing.T) {
	w := newWorld(t, nil)
	var switches [4]*oftest.Switch
	for i := range switches {
		d := model.DPID(i + 1)
		switches[i] = w.connect(oftest.New(d, "p1", "p2"))
		w.want(fmt.Sprint("one", i), rule(t, d, drop1), rule(t, d, `table=0,priority=5,in_port="p2",actions=output:"p1"`))
	}
	var all []flow.Rule
	for i := range switches {
		all = append(all, rule(t, model.DPID(i+1), drop2))
	}
	w.want("all", all...)
	w.settled()
	counts := func() (n int) {
		for _, s := range switches {
			c := s.Counts()
			n += c.FlowMods + c.GroupMods + c.Bundles
		}
		return n
	}
	before := counts()
	for turn := range 24 {
		for _, s := range switches {
			s.Freeze() // so that none comes back before its turn
			s.Disconnect()
		}
		w.takeOver()
		rest := []int{0, 1, 2, 3}
		for n, k := 4, turn; n > 0; n-- {
			i := k % n
			k /= n
			s := switches[rest[i]]
			rest = append(rest[:i:i], rest[i+1:]...)
			queries := s.Counts().FlowQueries
			s.Thaw()
			until(t, "the switch is read", func() bool { return s.Counts().FlowQueries > queries })
		}
		w.settled()
	}
	if after := counts(); after != before {
		t.Errorf("%d messages were sent", after-before)
	}
}
