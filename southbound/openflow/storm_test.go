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
		var msgs []openflow.Message
		for j := range each {
			msgs = append(msgs, add(t, uint16(j), output(uint32(1+round%2))))
		}
		var wg sync.WaitGroup
		for i := range switches {
			wg.Go(func() {
				s := c.Session(model.DPID(i + 1))
				if s == nil {
					t.Errorf("switch %d has no session", i+1)
					return
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

// TestRolesChangeWhileSwitchesComeAndGo mixes everything that may happen at once,
// and then wants all switches to be mastered with the last term.
func TestRolesChangeWhileSwitchesComeAndGo(t *testing.T) {
	const n, rounds = 20, 40
	c := asMaster(start(t, nil))
	switches := make([]*oftest.Switch, n)
	for i := range switches {
		switches[i] = oftest.New(model.DPID(i+1), "p1")
		switches[i].Keep(t, c.addr)
	}
	msgs := []openflow.Message{add(t, 1, output(1)), add(t, 2, output(1)), openflow.DeleteFlows(1, 1, 1)}
	ctx := until(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for g := range uint64(rounds) {
			c.SetRole(openflow.Role{Master: g%3 != 0, Generation: g + 2})
			time.Sleep(time.Millisecond)
		}
	})
	for i, sw := range switches {
		wg.Go(func() {
			for round := range rounds {
				if round%8 == i%8 {
					sw.Disconnect()
				}
				if s := c.Session(sw.DPID()); s != nil {
					// Each may fail, since roles and connections change; none may hang.
					_ = s.Bundle(ctx, msgs)
					_, _ = s.Flows(ctx, openflow.FlowQuery{Table: 0xff})
				}
			}
		})
	}
	wg.Wait()
	last := openflow.Role{Master: true, Generation: rounds + 10}
	c.SetRole(last)
	for _, sw := range switches {
		eventually(t, "the switch confirms the last term and takes a bundle", func() bool {
			s := c.Session(sw.DPID())
			if s == nil {
				return false
			}
			role, g := s.Role()
			return role == model.RoleMaster && g == last.Generation && s.Bundle(ctx, msgs) == nil
		})
	}
}
