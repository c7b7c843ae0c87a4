package faults

import (
	"testing"

	"kvnet/integration/harness"
)

// kill -9 of the leader while packets flow and clients write: nothing is lost, and
// nothing is written to a switch that was right.
func TestLeaderIsKilled(t *testing.T) {
	if *which != "" || *kills > 0 {
		t.Skip("it is among the other cases")
	}
	harness.NeedRoot(t)
	var s shared
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	r := s.run(t, faults[0])
	t.Logf("\n%s", table([]row{r}))
	if r.err != nil {
		t.Error(r.err)
	}
}
