package openflow_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

// TestManySwitchesAtOnce connects, programs, loses and takes back hundreds of
// switches at the same time.
func TestManySwitchesAtOnce(t *testing.T) {
	const n, each, rounds = 300, 20, 3
	c := asMaster(start(t, nil))
	switches := make([]*oftest.Switch, n)
	began := time.Now()
	for i := range switches {
		switches[i] = oftest.New(model.DPID(i+1), "p1", "p2")
		switches[i].Keep(t, c.addr)
	}
	var most int
	for round := range rounds {
		c.wait(t, "all switches are up", func() bool { return len(c.ups) == n*(round+1) })
		most = max(most, runtime.NumGoroutine())
		t.Logf("round %d: all are up after %s", round, time.Since(began))
		var wg sync.WaitGroup
		for i := range switches {
			wg.Go(func() {
				s := c.Session(model.DPID(i + 1))
				if s == nil {
					t.Errorf("switch %d has no session", i+1)
					return
				}
				var msgs []openflow.Message
				for j := range each {
					msgs = append(msgs, add(t, uint16(j), output(uint32(1+round%2))))
				}
				if err := s.Bundle(until(t), msgs); err != nil {
					t.Error(err)
				}
				if got, err := s.Flows(until(t), openflow.FlowQuery{Table: 0xff}); err != nil || len(got) != each {
					t.Errorf("%d rules, %v", len(got), err)
				}
			})
		}
		wg.Wait()
		t.Logf("round %d: all have their rules after %s", round, time.Since(began))
		if got := len(c.Sessions()); got != n {
			t.Errorf("%d sessions", got)
		}
		began = time.Now()
		if round < rounds-1 {
			for _, s := range switches {
				s.Disconnect()
			}
		}
	}
	// Two goroutines for a session, two for a switch and the one that connects it.
	if most > n*7 {
		t.Errorf("%d goroutines for %d switches", most, n)
	}
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	if len(c.downs) != n*(rounds-1) {
		t.Errorf("%d sessions ended", len(c.downs))
	}
}
