package order

import (
	"strings"

	"kvnet/handlers/all"
	"kvnet/handlers/meet"
)

// expectOrder checks that no two rules of one table and priority may match the same
// packet and do different things with it, but for those of which the original leaves
// the order open too (row L-22 of docs/deviations.md).
func (w *world) expectOrder(seed uint64) {
	w.t.Helper()
	unknown, _ := meet.Find(w.db.Snapshot(), all.Handlers()...)
	if len(unknown) > 0 {
		w.t.Fatalf("seed %d: %s\nsteps:\n  %s", seed, unknown[0], strings.Join(w.log, "\n  "))
	}
}
