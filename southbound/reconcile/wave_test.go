package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/wire"
)

// journal records what several switches carry out, in one order.
type journal struct {
	mu  sync.Mutex
	log []string
}

func (j *journal) watch(s *oftest.Switch, name string) {
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		j.mu.Lock()
		defer j.mu.Unlock()
		what := map[uint8]string{wire.TypeFlowMod: "flow", wire.TypeGroupMod: "group", wire.TypePacketOut: "packet"}[m.Type]
		if m.Type != wire.TypePacketOut {
			what += map[uint16]string{oftest.FlowAdd: " add", oftest.FlowDelete: " delete", oftest.GroupModify: " modify"}[m.Command]
		}
		// A message of a bundle is seen when it is added and when it is committed.
		if e := name + ": " + what; len(j.log) == 0 || j.log[len(j.log)-1] != e {
			j.log = append(j.log, e)
		}
		return nil
	})
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.log
	j.log = nil
	return out
}

// moveTo has the owner "a" want its rule on another switch.
func (w *world) moveTo(r flow.Rule) { w.want("a", r) }

func TestOverSeveralSwitchesAllAddsComeBeforeTheDeletes(t *testing.T) {
	w := newWorld(t, nil)
	var j journal
	s1, s2 := oftest.New(1, "p1"), oftest.New(2, "p1")
	j.watch(s1, "s1")
	j.watch(s2, "s2")
	w.connect(s1)
	w.connect(s2)
	w.want("other", rule(t, 2, drop2))
	w.moveTo(rule(t, 1, drop1))
	w.settled()
	for range 20 {
		j.take()
		w.moveTo(rule(t, 2, drop1))
		holds(t, s1)
		holds(t, s2, drop1, drop2)
		if got := j.take(); !slices.Equal(got, []string{"s2: flow add", "s1: flow delete"}) {
			t.Fatalf("order %q", got)
		}
		w.moveTo(rule(t, 1, drop1))
		holds(t, s2, drop2)
		holds(t, s1, drop1)
	}
}

func TestAFrozenSwitchKeepsNobodyWaitingTwice(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.WaveTimeout = 200 * time.Millisecond })
	s1, s2, s3 := w.connect(oftest.New(1, "p1")), w.connect(oftest.New(2, "p1")), w.connect(oftest.New(3, "p1"))
	w.want("x", rule(t, 2, drop2), rule(t, 3, drop2))
	w.moveTo(rule(t, 1, drop1))
	w.settled()
	s2.Freeze()
	defer s2.Thaw()
	w.moveTo(rule(t, 2, drop1))
	holds(t, s1) // after the time of one wave the delete is sent all the same
	// Waves that touch the frozen switch again don't wait for it.
	for i := range 30 {
		d := fmt.Sprintf("table=31,priority=100,ip,nw_dst=10.9.0.%d,actions=drop", i)
		w.want("y", rule(t, 2, d), rule(t, 3, d))
		holds(t, s3, drop2, d)
	}
	if n := waves(w, "timeout"); n != 1 {
		t.Errorf("%v waves ran into the time limit", n)
	}
}

func TestAnnouncementLeavesWithItsResponderAndTwiceAgain(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", responderRule(t, 1, "172.16.0.100"))
	until(t, "three announcements", func() bool { return s.Counts().PacketOuts == 3 })
	p := s.PacketOuts()
	if p[0].Port != 1 || len(p[0].Frame) != 42 {
		t.Errorf("%+v", p[0])
	}
	if b := s.Counts().Bundles; b != 1 {
		t.Errorf("%d bundles", b)
	}
	// Nothing added, nothing announced.
	w.touch("a")
	w.want("b", rule(t, 1, drop1))
	w.settled()
	// The responder's other actions are no new responder.
	r := responderRule(t, 1, "172.16.0.100")
	r.Actions = r.Actions[1:]
	w.want("a", r)
	until(t, "the change is in", func() bool { return s.Counts().FlowMods == 3 })
	w.settled()
	quiet(t, s, 3)
}

func TestAnnouncementOfAMovedResponderWaitsForTheOldOneToGo(t *testing.T) {
	shortRepeats(t)
	for _, how := range []string{"removal is acknowledged", "switch is gone"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.WaveTimeout = 50 * time.Millisecond })
			s1, s2 := w.connect(oftest.New(1, "p1")), w.connect(oftest.New(2, "p1"))
			w.want("a", responderRule(t, 1, "172.16.0.100"))
			until(t, "announced from the first", func() bool { return s1.Counts().PacketOuts == 3 })
			s1.Freeze()
			w.want("a", responderRule(t, 2, "172.16.0.100"))
			until(t, "the responder is on the second", func() bool { return len(s2.Rules()) == 1 })
			w.want("z", rule(t, 2, drop1)) // goes through the same worker
			until(t, "later work is done", func() bool { return len(s2.Rules()) == 2 })
			quiet(t, s2, 0)
			if how == "switch is gone" {
				s1.Disconnect()
			}
			s1.Thaw()
			until(t, "announced from the second", func() bool { return s2.Counts().PacketOuts == 3 })
			holds(t, s1)
			quiet(t, s1, 3)
		})
	}
}

func TestAnnouncementLeavesByAllItsPortsThatTheSwitchHas(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1", "p2"))
	r := responderRule(t, 1, "172.16.0.100")
	r.Announce.Ports = []flow.Port{flow.NamedPort("p2"), flow.NamedPort("nowhere"), flow.NamedPort("p1")}
	w.want("a", r)
	until(t, "three announcements by two ports", func() bool { return s.Counts().PacketOuts == 6 })
	quiet(t, s, 6)
	count := map[uint32]int{}
	for _, p := range s.PacketOuts() {
		count[p.Port]++
	}
	if count[1] != 3 || count[2] != 3 {
		t.Errorf("announced by ports %v", count)
	}
}

func TestMACThatMovesWithItsResponderIsAnnouncedOnceMore(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	r := responderRule(t, 1, "192.168.10.1")
	r.Announce.Roams = true
	w.want("a", r)
	until(t, "four announcements", func() bool { return s.Counts().PacketOuts == 4 })
	quiet(t, s, 4)
}

func TestAnotherMACOfAResponderIsAnnounced(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	r := responderRule(t, 1, "172.16.0.100")
	w.want("a", r)
	until(t, "three announcements", func() bool { return s.Counts().PacketOuts == 3 })
	again := *r.Announce
	again.Frame = strings.Repeat("b", 42)
	r.Actions, r.Announce = r.Actions[1:], &again
	w.want("a", r)
	until(t, "three more", func() bool { return s.Counts().PacketOuts == 6 })
	quiet(t, s, 6)
	if f := s.PacketOuts()[3].Frame; string(f) != again.Frame {
		t.Errorf("announced %x", f)
	}
}

func TestNewLeaderRepeatsTheAnnouncementsOfYoungResponders(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", responderRule(t, 1, "172.16.0.100"))
	until(t, "three announcements", func() bool { return s.Counts().PacketOuts == 3 })
	mods := s.Counts().FlowMods
	w.takeOver()
	until(t, "two more announcements", func() bool { return s.Counts().PacketOuts == 5 })
	if s.Counts().FlowMods != mods {
		t.Error("rules were sent")
	}
	quiet(t, s, 5)
}

// quiet checks that no further frame leaves for as long as repeats may take.
func quiet(t *testing.T, s *oftest.Switch, want int) {
	t.Helper()
	time.Sleep(3 * repeats[len(repeats)-1])
	if n := s.Counts().PacketOuts; n != want {
		t.Errorf("%d frames left, not %d", n, want)
	}
}

func shortRepeats(t *testing.T) {
	old, oldRoaming := repeats, roamingRepeats
	repeats = []time.Duration{10 * time.Millisecond, 30 * time.Millisecond}
	roamingRepeats = []time.Duration{time.Millisecond}
	t.Cleanup(func() { repeats, roamingRepeats = old, oldRoaming })
}

func TestAnnouncementWaitsNoLongerWhenTheOldResponderWasRemovedByHand(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour; c.WaveTimeout = 50 * time.Millisecond })
	s1, s2 := w.connect(oftest.New(1, "p1")), w.connect(oftest.New(2, "p1"))
	w.want("a", responderRule(t, 1, "172.16.0.100"))
	until(t, "announced from the first", func() bool { return s1.Counts().PacketOuts == 3 })
	// A port that is missed on the first holds its deletes.
	w.want("b", rule(t, 1, `table=0,priority=5,in_port="p9",actions=drop`))
	until(t, "the port is missed", func() bool { return len(w.engine.Waiting(Filter{})) == 1 })
	w.want("a", responderRule(t, 2, "172.16.0.100"))
	until(t, "the responder is on the second", func() bool { return len(s2.Rules()) == 1 })
	quiet(t, s2, 0)
	s1.RemoveFlows(func(flow.Rule) bool { return true })
	until(t, "announced from the second", func() bool { return s2.Counts().PacketOuts == 3 })
	quiet(t, s1, 3)
}

func TestNothingIsAnnouncedOnASwitchThatIsLeftAlone(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, nil)
	s := w.connect(oftest.New(1, "p1"))
	w.want("a", responderRule(t, 1, "172.16.0.100"))
	until(t, "three announcements", func() bool { return s.Counts().PacketOuts == 3 })
	w.byHand(s, 0x00b5_0000_1234_5678, rule(t, 1, drop2))
	w.takeOver()
	until(t, "the switch is left alone", func() bool {
		v := w.engine.Switches()
		return len(v) == 1 && v[0].Blocked != ""
	})
	quiet(t, s, 3)
}

func TestResponderOfAnotherRuleOnTheSameSwitchIsStillWaitedFor(t *testing.T) {
	shortRepeats(t)
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour; c.WaveTimeout = 50 * time.Millisecond })
	s1, s2 := w.connect(oftest.New(1, "p1", "p2")), w.connect(oftest.New(2, "p1", "p2"))
	w.want("a", responderRule(t, 1, "172.16.0.100"))
	w.settled()
	// A port that is missed keeps the old rule until after the new one has come.
	w.want("b", rule(t, 1, `table=0,priority=5,in_port="p9",actions=drop`))
	until(t, "the port is missed", func() bool { return len(w.engine.Waiting(Filter{})) == 1 })
	r := responderRule(t, 1, "172.16.0.100")
	r.Match.InPort = flow.NamedPort("p2")
	w.want("a", r)
	until(t, "both are there", func() bool { return len(s1.Rules()) == 2 })
	s1.AddPort(9, "p9", true)
	w.settled()
	until(t, "the old rule is gone", func() bool { return len(s1.Rules()) == 2 && s1.Counts().FlowMods == 4 })
	s1.Freeze()
	r.Switch = 2
	w.want("a", r)
	until(t, "the responder is on the second", func() bool { return len(s2.Rules()) == 1 })
	quiet(t, s2, 0)
	s1.Thaw()
	until(t, "announced from the second", func() bool { return s2.Counts().PacketOuts == 3 })
}
