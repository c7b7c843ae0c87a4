package openflow_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// Matches and actions of all examples in any combination that is valid.
func TestMixedRulesAreEncodedAsByTheLibrary(t *testing.T) {
	kinds := ruleKinds()
	var rules []flow.Rule
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		rules = append(rules, kinds[name])
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func() flow.Rule { return rules[rnd.IntN(len(rules))] }
	x, compared := &openflow.Encoder{}, 0
	for range 20_000 {
		r := flow.Rule{Table: uint8(rnd.IntN(100)), Priority: uint16(rnd.Uint32()), Match: pick().Match}
		for range rnd.IntN(4) {
			r.Actions = append(r.Actions, pick().Actions...)
		}
		if rnd.IntN(2) == 0 {
			r.Goto = r.Table + 1
		}
		if r.Validate() != nil {
			continue
		}
		e, err := x.Rule(r)
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		openflow.SameAsTheLibrary(t, r, e)
		compared++
	}
	if compared < 5000 {
		t.Errorf("only %d rules were compared", compared)
	}
}
