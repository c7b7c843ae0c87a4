package order

import (
	"strings"

	"kvnet/handlers/all"
	"kvnet/southbound/flow"
)

// expectOrder checks that no two rules of one table and priority may match the same
// packet and do different things with it (row L-22 of docs/deviations.md).
func (w *world) expectOrder(seed uint64) {
	w.t.Helper()
	var rules []flow.Rule
	snap := w.db.Snapshot()
	for _, h := range all.Handlers() {
		for _, o := range h.Owners(snap) {
			set, _ := h.Rules(snap, o)
			rules = append(rules, set.Rules...)
		}
	}
	for _, p := range flow.Ambiguous(rules) {
		if !asInTheOriginal(p[0], p[1]) {
			w.t.Fatalf("seed %d: which one counts on %s?\n  %s\n  %s\nsteps:\n  %s", seed, p[0].Switch, p[0], p[1], strings.Join(w.log, "\n  "))
		}
	}
}

// asInTheOriginal accepts Snat-U and Snat-D, which what a VM sends to a SNAT address
// meets in the original too (row S-e of docs/deviations.md).
func asInTheOriginal(a, b flow.Rule) bool {
	isUpstream := func(r flow.Rule) bool { return !r.Match.EthDst.IsZero() && !r.Match.IPDst.IsValid() }
	return a.Table == flow.TableGwEntry && a.Priority == flow.PriorityStatefulSNAT && isUpstream(a) != isUpstream(b)
}
