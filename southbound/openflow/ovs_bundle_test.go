package openflow_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/ovstest"
)

// real is a real switch with a controller that is its master.
func real(t *testing.T) (*ovstest.Switch, *controller, *openflow.Session) {
	t.Helper()
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1", "p2")
	c := asMaster(startOn(t, ovs.Listen(), nil))
	ovs.SetController("br0", c.addr)
	return ovs, c, c.master(t, 0x42)
}

// both runs a test with a real switch and with a simulated one, which so is shown
// to behave like a real one. holds lists rules and groups of the switch.
func both(t *testing.T, f func(t *testing.T, s *openflow.Session, holds func() []string)) {
	t.Run("real", func(t *testing.T) {
		ovs, _, s := real(t)
		f(t, s, func() []string {
			var out []string
			for _, l := range ovs.Flows("br0") {
				r, err := flow.ParseRule(l)
				if err != nil {
					t.Errorf("%s: %v", l, err)
				}
				out = append(out, r.String())
			}
			for _, l := range ovs.Groups("br0") {
				g, err := flow.ParseGroup(l)
				if err != nil {
					t.Errorf("%s: %v", l, err)
				}
				out = append(out, g.String())
			}
			return out
		})
	})
	t.Run("simulated", func(t *testing.T) {
		sw := oftest.New(0x42, "p1", "p2")
		c := asMaster(start(t, nil))
		sw.Connect(t, c.addr)
		f(t, c.master(t, 0x42), func() []string {
			var out []string
			for _, r := range sw.Rules() {
				out = append(out, r.String())
			}
			for _, g := range sw.Groups() {
				out = append(out, g.String())
			}
			return out
		})
	})
}

func encode(t testing.TB, r flow.Rule) openflow.EncodedRule {
	t.Helper()
	e, err := openflow.EncodeRule(r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rule is a simple rule of that priority.
func rule(priority uint16, actions ...flow.Action) flow.Rule {
	return flow.Rule{Table: 1, Priority: priority, Match: flow.Match{EthType: flow.EthTypeIPv4}, Actions: actions}
}

func add(t testing.TB, priority uint16, actions ...flow.Action) openflow.Message {
	t.Helper()
	return openflow.AddFlow(encode(t, rule(priority, actions...)), flow.CookieMark|uint64(priority))
}

func group(t testing.TB, message func(flow.Group) (openflow.Message, error), g flow.Group) openflow.Message {
	t.Helper()
	m, err := message(g)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBundleIsOrdered(t *testing.T) { both(t, bundleIsOrdered) }

func bundleIsOrdered(t *testing.T, s *openflow.Session, holds func() []string) {
	g := flow.Group{ID: 0x6b000001, Type: flow.GroupSelect, Buckets: []flow.Bucket{{Weight: 1, Actions: []flow.Action{output(1)}}}}
	err := s.Bundle(until(t), []openflow.Message{
		add(t, 1, output(1)), group(t, openflow.AddGroup, g), add(t, 2, flow.ToGroup{ID: g.ID}),
		openflow.DeleteFlows(1, flow.CookieMark|1, ^uint64(0)), add(t, 1, output(2)),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := holds()
	want := []string{rule(2, flow.ToGroup{ID: g.ID}).String(), rule(1, output(2)).String(), g.String()}
	if !slices.Equal(got, want) {
		t.Fatalf("the switch holds %q", got)
	}
}

func TestRuleOfTheSameMatchIsReplaced(t *testing.T) { both(t, ruleIsReplaced) }

func ruleIsReplaced(t *testing.T, s *openflow.Session, holds func() []string) {
	e := encode(t, rule(1, output(1)))
	if err := s.Bundle(until(t), []openflow.Message{openflow.AddFlow(e, 1)}); err != nil {
		t.Fatal(err)
	}
	e = encode(t, rule(1, output(2)))
	if err := s.Bundle(until(t), []openflow.Message{openflow.AddFlow(e, 2), openflow.DeleteFlows(1, 1, ^uint64(0))}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Flows(until(t), openflow.FlowQuery{Table: 1})
	if err != nil || len(got) != 1 || got[0].Cookie != 2 || got[0].Rule.String() != rule(1, output(2)).String() || got[0].Duration > time.Minute {
		t.Errorf("rules %+v, %v", got, err)
	}
	if l := holds(); len(l) != 1 {
		t.Errorf("the switch holds %q", l)
	}
}

// A switch refuses a message when it is added (it can't decode it) or when the
// bundle is committed.
func TestRefusedBundleLeavesNothing(t *testing.T) { both(t, refusedBundle) }

func refusedBundle(t *testing.T, s *openflow.Session, holds func() []string) {
	missing := flow.ToGroup{ID: 0x6b000bad}
	undecodable := func(priority uint16) openflow.Message {
		e := encode(t, rule(priority, output(1)))
		e.Instructions = []byte{0, 1, 0, 8, 0, 0, 0, 0} // goto_table:0
		return openflow.AddFlow(e, 1)
	}
	g := flow.Group{ID: 0x6b000001, Type: flow.GroupSelect}
	for name, c := range map[string]struct {
		msgs    []openflow.Message
		refused []openflow.Refusal
	}{
		"at the commit": {
			[]openflow.Message{add(t, 1, output(1)), add(t, 2, missing), add(t, 3, output(1))},
			[]openflow.Refusal{{Index: 1, Type: 2, Code: 9, Text: "OFPET_BAD_ACTION/OFPBAC_BAD_OUT_GROUP"}},
		},
		"when it is added": {
			[]openflow.Message{add(t, 1, output(1)), undecodable(2), add(t, 3, output(1))},
			[]openflow.Refusal{{Index: 1, Type: 3, Code: 2, Text: "OFPET_BAD_INSTRUCTION/OFPBIC_BAD_TABLE_ID"}},
		},
		"several when they are added": {
			[]openflow.Message{undecodable(1), add(t, 2, output(1)), undecodable(3)},
			[]openflow.Refusal{
				{Index: 0, Type: 3, Code: 2, Text: "OFPET_BAD_INSTRUCTION/OFPBIC_BAD_TABLE_ID"},
				{Index: 2, Type: 3, Code: 2, Text: "OFPET_BAD_INSTRUCTION/OFPBIC_BAD_TABLE_ID"},
			},
		},
		"the only one when it is added": {
			[]openflow.Message{undecodable(1)},
			[]openflow.Refusal{{Index: 0, Type: 3, Code: 2, Text: "OFPET_BAD_INSTRUCTION/OFPBIC_BAD_TABLE_ID"}},
		},
		"the only one at the commit": {
			[]openflow.Message{add(t, 1, missing)},
			[]openflow.Refusal{{Index: 0, Type: 2, Code: 9, Text: "OFPET_BAD_ACTION/OFPBAC_BAD_OUT_GROUP"}},
		},
		"a group, after others": {
			[]openflow.Message{group(t, openflow.AddGroup, g), add(t, 1, flow.ToGroup{ID: g.ID}), group(t, openflow.AddGroup, g)},
			[]openflow.Refusal{{Index: 2, Type: 6, Code: 0, Text: "OFPET_GROUP_MOD_FAILED/OFPGMFC_GROUP_EXISTS"}},
		},
		"a group to modify that isn't there": {
			[]openflow.Message{add(t, 1, output(1)), group(t, openflow.ModifyGroup, g)},
			[]openflow.Refusal{{Index: 1, Type: 6, Code: 8, Text: "OFPET_GROUP_MOD_FAILED/OFPGMFC_UNKNOWN_GROUP"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Bundle(until(t), c.msgs)
			var refused *openflow.BundleError
			if !errors.As(err, &refused) || !reflect.DeepEqual(refused.Refused, c.refused) {
				t.Errorf("error %v", err)
			}
			if err := s.Barrier(until(t)); err != nil {
				t.Fatal(err)
			}
			if got := holds(); len(got) != 0 {
				t.Errorf("in force: %q", got)
			}
		})
	}
	// The session goes on.
	if err := s.Bundle(until(t), []openflow.Message{add(t, 1, output(1)), add(t, 2, output(1))}); err != nil {
		t.Fatal(err)
	}
}

func TestBundlesAtTheSameTime(t *testing.T) { both(t, bundlesAtTheSameTime) }

func bundlesAtTheSameTime(t *testing.T, s *openflow.Session, holds func() []string) {
	const n, each = 20, 50
	done := make(chan error, n)
	for b := range n {
		var msgs []openflow.Message
		for i := range each {
			msgs = append(msgs, add(t, uint16(1+b*each+i), output(1)))
		}
		if b%4 == 0 {
			msgs = append(msgs, add(t, 60000, flow.ToGroup{ID: 0x6b000bad}))
		}
		go func() { done <- s.Bundle(until(t), msgs) }()
	}
	failed := 0
	for range n {
		var refused *openflow.BundleError
		if err := <-done; errors.As(err, &refused) && refused.Refused[0].Index == each {
			failed++
		} else if err != nil {
			t.Error(err)
		}
	}
	if got := len(holds()); failed != n/4 || got != (n-n/4)*each {
		t.Errorf("%d bundles refused, %d rules", failed, got)
	}
}

func TestGroupsAreReadBackAsTheyWereSent(t *testing.T) { both(t, groupsAreReadBack) }

func groupsAreReadBack(t *testing.T, s *openflow.Session, holds func() []string) {
	bucket := func(weight uint16, last byte) flow.Bucket {
		return flow.Bucket{Weight: weight, Actions: []flow.Action{
			flow.SetMAC{Field: flow.FieldEthDst, MAC: model.MAC{2, 0, 0, 0, 0, last}},
			flow.SetIP{Field: flow.FieldIPDst, IP: addr("10.10.0.11")}, flow.Output{Port: flow.Normal}}}
	}
	empty := flow.Group{Switch: 0x42, ID: 0x6b000001, Type: flow.GroupSelect}
	full := empty
	full.Buckets = []flow.Bucket{bucket(1, 1), bucket(1, 2), bucket(100, 3)}
	all := flow.Group{Switch: 0x42, ID: 0x6bffffff, Type: flow.GroupAll, Buckets: []flow.Bucket{{Actions: []flow.Action{output(1)}}, {Actions: []flow.Action{output(2)}}, {}}}

	if err := s.Bundle(until(t), []openflow.Message{group(t, openflow.AddGroup, empty), group(t, openflow.AddGroup, all)}); err != nil {
		t.Fatal(err)
	}
	checkGroups(t, s, empty, all)
	if err := s.Bundle(until(t), []openflow.Message{add(t, 1, flow.ToGroup{ID: full.ID}), group(t, openflow.ModifyGroup, full)}); err != nil {
		t.Fatal(err)
	}
	checkGroups(t, s, full, all)
	got, want := holds(), []string{rule(1, flow.ToGroup{ID: full.ID}).String(), full.String(), all.String()}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("after the group was modified, the switch holds\n%q\nwanted\n%q", got, want)
	}
	stats, err := s.GroupStats(until(t))
	slices.SortFunc(stats, func(a, b openflow.GroupStats) int { return len(a.Buckets) - len(b.Buckets) })
	if err != nil || len(stats) != 2 || len(stats[0].Buckets) != 3 || stats[0].Duration <= 0 {
		t.Errorf("statistics %+v, %v", stats, err)
	}
	if err := s.Bundle(until(t), []openflow.Message{openflow.DeleteGroup(full.ID)}); err != nil {
		t.Fatal(err)
	}
	checkGroups(t, s, all)
	if got := holds(); len(got) != 1 {
		t.Errorf("after the group was deleted: %q", got)
	}
}

func TestALargestGroupIsWrittenAndReadBack(t *testing.T) { both(t, largestGroup) }

// largestGroup has as many buckets as a balancer may have members: they fill one
// message, also that of the switch's answer.
func largestGroup(t *testing.T, s *openflow.Session, _ func() []string) {
	g := flow.Group{Switch: 0x42, ID: 0x6b000001, Type: flow.GroupSelect}
	for i := range model.MaxMembers {
		g.Buckets = append(g.Buckets, flow.Bucket{Weight: 1, Actions: []flow.Action{
			flow.SetMAC{Field: flow.FieldEthDst, MAC: model.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}},
			flow.SetIP{Field: flow.FieldIPDst, IP: addr("10.10.0.11")}, flow.Output{Port: flow.Normal}}})
	}
	few := g
	few.Buckets = g.Buckets[:2]
	for _, m := range []openflow.Message{group(t, openflow.AddGroup, g), group(t, openflow.ModifyGroup, few), group(t, openflow.ModifyGroup, g)} {
		if err := s.Bundle(until(t), []openflow.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	checkGroups(t, s, g)
}

func checkGroups(t *testing.T, s *openflow.Session, want ...flow.Group) {
	t.Helper()
	got, err := s.Groups(until(t))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b openflow.GroupEntry) int { return int(a.Group.ID) - int(b.Group.ID) })
	if len(got) != len(want) {
		t.Fatalf("groups %+v", got)
	}
	for i, g := range got {
		if g.DecodeErr != nil || !g.Group.Equal(want[i]) {
			t.Errorf("read %v (%v)\nsent %v", g.Group, g.DecodeErr, want[i])
		}
	}
}

func TestManyRules(t *testing.T) {
	ovs, _, s := real(t)
	const n = 20000
	var msgs []openflow.Message
	for i := range n {
		r := rule(uint16(i), output(1))
		r.Match.TunID, r.Match.IPDst = flow.Uint64(uint64(i)), flow.Host(addr("10.0.0.1"))
		msgs = append(msgs, openflow.AddFlow(encode(t, r), flow.CookieMark|uint64(i%2)<<8))
	}
	began := time.Now()
	if err := s.Bundle(until(t), msgs); err != nil {
		t.Fatal(err)
	}
	t.Logf("a bundle of %d rules took %s", n, time.Since(began))
	began = time.Now()
	got, err := s.Flows(until(t), openflow.FlowQuery{Table: 0xff})
	if err != nil || len(got) != n {
		t.Fatalf("%d rules: %v", len(got), err)
	}
	t.Logf("reading them took %s", time.Since(began))
	seen := make([]bool, n)
	for _, e := range got {
		if e.DecodeErr != nil || seen[e.Rule.Match.TunID.Value] || e.Rule.Switch != 0x42 {
			t.Fatalf("entry %+v", e)
		}
		seen[e.Rule.Match.TunID.Value] = true
	}
	half, err := s.Flows(until(t), openflow.FlowQuery{Table: 1, Cookie: 1 << 8, Mask: 1 << 8})
	if err != nil || len(half) != n/2 {
		t.Errorf("%d rules have the cookie, %v", len(half), err)
	}
	if none, err := s.Flows(until(t), openflow.FlowQuery{Table: 2}); err != nil || len(none) != 0 {
		t.Errorf("%d rules in another table, %v", len(none), err)
	}
	if err := s.Bundle(until(t), []openflow.Message{openflow.DeleteFlows(0xff, flow.CookieMark, flow.CookieMask)}); err != nil {
		t.Fatal(err)
	}
	if left := ovs.Flows("br0"); len(left) != 0 {
		t.Errorf("%d rules are left", len(left))
	}
}
