package reconcile

import (
	"fmt"
	"testing"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/oftest"
)

// A switch refuses a rule that leads to no group, so such a rule must not set its
// owner aside.
func TestRulesWaitForThePortsOfTheirGroup(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefusedBackoff, c.DeleteHold = time.Hour, time.Millisecond })
	s := w.connect(oftest.New(1, "p1"))
	const id = flow.GroupIDMin + 1
	toGroup := fmt.Sprintf("table=32,priority=9,ip,actions=group:%d", id)
	w.wantSet("lb", flow.Set{
		Groups: []flow.Group{{Switch: 1, ID: id, Type: flow.GroupSelect, Buckets: []flow.Bucket{{Weight: 1, Actions: []flow.Action{flow.Output{Port: flow.NamedPort("p2")}}}}}},
		Rules:  []flow.Rule{rule(t, 1, drop1), rule(t, 1, toGroup)},
	})
	holds(t, s, drop1)
	s.AddPort(2, "p2", true)
	holds(t, s, drop1, toGroup)
	s.RemovePort(2)
	holds(t, s, drop1)
	until(t, "the group is gone", func() bool { return len(s.Groups()) == 0 })
	s.AddPort(5, "p2", true)
	holds(t, s, drop1, toGroup)
	for _, v := range w.engine.Rules(Filter{}) {
		if v.State == StateRefused {
			t.Errorf("refused: %+v", v)
		}
	}
}
