package order

import (
	"slices"
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
	unknown = slices.DeleteFunc(unknown, sharesSNATAddress)
	if len(unknown) > 0 {
		w.t.Fatalf("seed %d: %s\nsteps:\n  %s", seed, unknown[0], strings.Join(w.log, "\n  "))
	}
}

// sharesSNATAddress accepts the Snat-D of two routers with one SNAT address, a fault of
// the configuration that only this test makes. With equal tags it shows as conflict.
func sharesSNATAddress(p meet.Pair) bool { return p.Kinds == [2]string{"Snat-D", "Snat-D"} }
