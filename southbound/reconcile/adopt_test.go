package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/wire"
)

const (
	onosCookie = 0x00b5_0000_0000_0000
	onosMask   = 0xffff_0000_0000_0000
)

// former is what another controller has left on a switch: rules with ONOS's
// cookie, rules of somebody else, and groups.
type former struct {
	rules, foreign []string
	groups         []uint32
	nested         map[uint32]uint32 // group and the one that its bucket leads to
}

func (f former) plant(t *testing.T, s *oftest.Switch) {
	t.Helper()
	var msgs []openflow.Message
	for _, id := range f.groups {
		g := flow.Group{ID: id, Type: flow.GroupSelect, Buckets: []flow.Bucket{{Weight: 1, Actions: []flow.Action{flow.Output{Port: flow.NumberedPort(1)}}}}}
		if to, ok := f.nested[id]; ok {
			g.Buckets[0].Actions = []flow.Action{flow.ToGroup{ID: to}}
		}
		m, err := openflow.AddGroup(g)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, m)
	}
	add := func(cookie uint64, text string) {
		e, err := openflow.EncodeRule(rule(t, s.DPID(), text))
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, openflow.AddFlow(e, cookie))
	}
	for i, r := range f.rules {
		add(onosCookie|uint64(i+1), r)
	}
	for _, r := range f.foreign {
		add(0x77, r)
	}
	plantMessages(t, s, msgs)
}

// formerWorld is a switch with what another controller has left, which waits to be
// taken over by an engine that wants something else.
func formerWorld(t *testing.T, f former, want flow.Set) (*world, *oftest.Switch) {
	t.Helper()
	w := newWorld(t, nil)
	s := oftest.New(1, "p1", "p2")
	f.plant(t, s)
	w.wantSet("a", want)
	w.connect(s)
	until(t, "the switch is left alone", func() bool {
		v := w.engine.Switches()
		return len(v) == 1 && v[0].Blocked != ""
	})
	return w, s
}

func (w *world) adopt(dry bool) AdoptView {
	w.t.Helper()
	v, err := w.engine.Adopt(w.t.Context(), Adoption{Cookie: onosCookie, Mask: onosMask, DryRun: dry})
	if err != nil || len(v) != 1 {
		w.t.Fatalf("adopt: %+v, %v", v, err)
	}
	return v[0]
}

const (
	ownGroupID = flow.GroupIDMin + 7
	old1       = "table=31,priority=40500,ip,nw_dst=10.0.0.8,actions=output:1"
	old2       = "table=31,priority=40500,ip,nw_dst=10.0.0.9,actions=group:5"
	oldAsDrop1 = "table=31,priority=100,ip,nw_dst=10.0.0.1,actions=output:2"
)

func balancer(t *testing.T) flow.Set {
	return flow.Set{
		Groups: []flow.Group{{Switch: 1, ID: ownGroupID, Type: flow.GroupSelect, Buckets: []flow.Bucket{{Weight: 1, Actions: []flow.Action{flow.Output{Port: flow.NamedPort("p2")}}}}}},
		Rules:  []flow.Rule{rule(t, 1, drop1), rule(t, 1, drop2), rule(t, 1, fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", ownGroupID))},
	}
}

func groupIDs(s *oftest.Switch) (ids []uint32) {
	for _, g := range s.Groups() {
		ids = append(ids, g.ID)
	}
	return ids
}

func TestAdoptionTakesOverInOneBundleOwnRulesFirst(t *testing.T) {
	foreign := "table=0,priority=7,ip,actions=group:6"
	w, s := formerWorld(t, former{
		rules:   []string{old1, old2, oldAsDrop1, "table=33,priority=1,ip,actions=group:6"},
		foreign: []string{foreign},
		groups:  []uint32{5, 6, 8, 9}, nested: map[uint32]uint32{6: 8},
	}, balancer(t))

	want := AdoptView{DPID: 1, Matched: 4, Replaced: 1, Removed: 3, Groups: 2, Added: 2}
	before := s.Counts()
	if v := w.adopt(true); v != want {
		t.Errorf("dry run %+v, want %+v", v, want)
	}
	if c := s.Counts(); c.FlowMods != before.FlowMods || c.GroupMods != before.GroupMods || len(s.Rules()) != 5 {
		t.Errorf("the dry run has changed something: %+v, before %+v", c, before)
	}

	var mu sync.Mutex
	var order []string
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		mu.Lock()
		defer mu.Unlock()
		what := map[uint8]string{wire.TypeFlowMod: "flow", wire.TypeGroupMod: "group", wire.TypePacketOut: "packet"}[m.Type]
		order = append(order, fmt.Sprintf("%s %d", what, m.Command))
		return nil
	})
	if v := w.adopt(false); v != want {
		t.Errorf("adoption %+v, want %+v", v, want)
	}
	own := fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", ownGroupID)
	holds(t, s, foreign, drop1, drop2, own)
	if got, want := groupIDs(s), []uint32{6, 8, ownGroupID}; !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
	if n := s.Counts().Bundles - before.Bundles; n != 1 {
		t.Errorf("%d bundles", n)
	}
	// Each message is seen when it is added to the bundle and at the commit.
	mu.Lock()
	one := []string{"group 0", "flow 0", "flow 0", "flow 0", "flow 3", "group 2", "group 2"}
	if !slices.Equal(order, slices.Concat(one, one)) {
		t.Errorf("order %q", order)
	}
	mu.Unlock()

	if b := w.engine.Switches()[0].Blocked; b != "" {
		t.Errorf("still left alone: %s", b)
	}
	w.want("b", rule(t, 1, "table=31,priority=100,ip,nw_dst=10.0.0.3,actions=drop"))
	holds(t, s, foreign, drop1, drop2, own, "table=31,priority=100,ip,nw_dst=10.0.0.3,actions=drop")
	w.settled()
	if v := w.adopt(false); v != (AdoptView{DPID: 1}) {
		t.Errorf("adopted once more: %+v", v)
	}
}

func TestRefusedAdoptionChangesNothing(t *testing.T) {
	for _, how := range []string{"when added", "at the commit"} {
		t.Run(how, func(t *testing.T) {
			w, s := formerWorld(t, former{rules: []string{old1, old2, oldAsDrop1}, groups: []uint32{5}}, balancer(t))
			s.Refuse(func(m oftest.Mod) *oftest.Refusal {
				if m.Type == wire.TypeFlowMod && m.Rule.Table == 32 {
					return &oftest.Refusal{Type: 2, Code: 9, AtAdd: how == "when added"}
				}
				return nil
			})
			v := w.adopt(false)
			if v.Err == nil || !strings.Contains(v.Err.Error(), "w/a") || !strings.Contains(v.Err.Error(), "nothing is changed") {
				t.Errorf("error %v", v.Err)
			}
			holds(t, s, old1, old2, oldAsDrop1)
			if got := groupIDs(s); !slices.Equal(got, []uint32{5}) {
				t.Errorf("groups %v", got)
			}
			if w.engine.Switches()[0].Blocked == "" {
				t.Error("the switch is written to though nothing was adopted")
			}
			s.Refuse(nil)
			if v := w.adopt(false); v.Err != nil {
				t.Errorf("second try: %v", v.Err)
			}
			w.settled()
			if got := groupIDs(s); !slices.Equal(got, []uint32{ownGroupID}) {
				t.Errorf("groups %v", got)
			}
		})
	}
}

func TestAdoptionWaitsForPortsOfOwnRules(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DeleteHold = time.Hour })
	s := oftest.New(1, "p1")
	former{rules: []string{old1}}.plant(t, s)
	later := `table=31,priority=5,ip,actions=output:"p9"`
	w.want("a", rule(t, 1, later))
	w.connect(s)
	until(t, "the switch is left alone", func() bool {
		v := w.engine.Switches()
		return len(v) == 1 && v[0].Blocked != ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	v, err := w.engine.Adopt(ctx, Adoption{Cookie: onosCookie, Mask: onosMask})
	if err != nil || len(v) != 1 || !errors.Is(v[0].Err, errIncomplete) {
		t.Fatalf("%+v, %v", v, err)
	}
	holds(t, s, old1)
	done := make(chan AdoptView, 1)
	go func() { done <- w.adopt(false) }()
	s.AddPort(9, "p9", true)
	if v := <-done; v.Err != nil || v.Removed != 1 || v.Added != 1 {
		t.Errorf("%+v", v)
	}
	holds(t, s, "table=31,priority=5,ip,actions=output:9")
}

func TestAdoptionOfOneApplicationLeavesTheSwitchToTheOthers(t *testing.T) {
	w := newWorld(t, nil)
	s := oftest.New(1, "p1", "p2")
	plant(t, s, 0x0001_0000_1234_5678, rule(t, 1, "table=0,priority=5,arp,actions=CONTROLLER:65535"))
	former{rules: []string{old1}}.plant(t, s)
	w.want("a", rule(t, 1, drop1))
	w.connect(s)
	until(t, "the switch is left alone", func() bool {
		v := w.engine.Switches()
		return len(v) == 1 && v[0].Blocked != ""
	})
	if v := w.adopt(false); v.Err == nil || v.Removed != 1 {
		t.Errorf("%+v", v)
	}
	if w.engine.Switches()[0].Blocked == "" {
		t.Error("the switch is not left alone any more")
	}
	v, err := w.engine.Adopt(t.Context(), Adoption{Cookie: 0x0001_0000_0000_0000, Mask: onosMask, Switch: 1})
	if err != nil || len(v) != 1 || v[0].Err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	holds(t, s, drop1)
	w.settled()
}

func TestLargeAdoptionGoesInSeveralBundlesDeletesLast(t *testing.T) {
	var set flow.Set
	for i := range maxBundle + 100 {
		set.Rules = append(set.Rules, rule(t, 1, fmt.Sprintf("table=31,priority=100,ip,nw_dst=10.%d.%d.%d,actions=drop", i>>16, i>>8&255, i&255)))
	}
	w, s := formerWorld(t, former{rules: []string{old2}, groups: []uint32{5}}, set)
	var mu sync.Mutex
	adds, early := 0, false
	s.Refuse(func(m oftest.Mod) *oftest.Refusal {
		mu.Lock()
		defer mu.Unlock()
		if m.Type == wire.TypeFlowMod && m.Command == oftest.FlowAdd {
			adds++
		} else if adds < len(set.Rules) {
			early = true
		}
		return nil
	})
	before := s.Counts().Bundles
	if v := w.adopt(false); v.Err != nil || v.Added != len(set.Rules) || v.Removed != 1 || v.Groups != 1 {
		t.Errorf("%+v", v)
	}
	if n := s.Counts().Bundles - before; n != 2 {
		t.Errorf("%d bundles", n)
	}
	if early {
		t.Error("something was deleted before all adds were in")
	}
	w.settled()
	if len(s.Rules()) != len(set.Rules) || len(s.Groups()) != 0 {
		t.Errorf("%d rules, %d groups", len(s.Rules()), len(s.Groups()))
	}
}

func TestAdoptionThatCantBeMeantIsRefused(t *testing.T) {
	for _, x := range []struct{ cookie, mask uint64 }{
		{0, 0},
		{flow.CookieMark, flow.CookieMask},
		{flow.CookieMark | 5, ^uint64(0)},
		{0x0b << 56, 0x0f << 56},
		{0xb5, 0xffff},
		{onosCookie | 1, onosMask},
	} {
		if err := (Adoption{Cookie: x.cookie, Mask: x.mask}).Validate(); !errors.Is(err, ErrAdoption) {
			t.Errorf("0x%x/0x%x: %v", x.cookie, x.mask, err)
		}
	}
	if err := (Adoption{Cookie: onosCookie, Mask: onosMask}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestAdoptionOfAnUnknownSwitchSaysSo(t *testing.T) {
	w := newWorld(t, nil)
	v, err := w.engine.Adopt(t.Context(), Adoption{Cookie: onosCookie, Mask: onosMask, Switch: 9})
	if err != nil || len(v) != 1 || v[0].DPID != 9 || v[0].Err == nil {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestKeyOfAnUnreadableRuleIsThatOfItsMatch(t *testing.T) {
	r := rule(t, 1, drop1)
	e, err := openflow.EncodeRule(r)
	if err != nil {
		t.Fatal(err)
	}
	f := openflow.FlowEntry{Table: e.Table, Priority: e.Priority, MatchBytes: e.Match, DecodeErr: errors.New("unknown")}
	if k := keyOf(&f); k != r.Key() {
		t.Errorf("key %+v, want %+v", k, r.Key())
	}
}

func TestGroupsOfUnreadableRulesStay(t *testing.T) {
	f := openflow.FlowEntry{DecodeErr: errors.New("unknown"), InstructionBytes: []byte{
		0, 4, 0, 24, 0, 0, 0, 0, 0xff, 0xff, 0, 8, 0, 0, 0, 1, 0, 22, 0, 8, 0, 0, 0, 5,
	}}
	if ids := groupsOf(&f); !slices.Equal(ids, []uint32{5}) {
		t.Errorf("groups %v", ids)
	}
}
