package openflow_test

import (
	"errors"
	"strings"
	"testing"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/ovstest"
)

// waitStale waits until the newest generation that c was told of is g.
func (c *controller) waitStale(t *testing.T, n int, g uint64) {
	t.Helper()
	c.wait(t, "a newer generation is reported", func() bool { return len(c.stale) == n && c.stale[n-1] == g })
}

func TestSwitchEnforcesTheNewestTerm(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		ovs := ovstest.Start(t)
		ovs.AddBridge("br0", 0x42, "p1")
		a, b := startOn(t, ovs.Listen(), nil), startOn(t, ovs.Listen(), nil)
		enforcesTheNewestTerm(t, a, b, func() { ovs.SetController("br0", a.addr, b.addr) })
	})
	t.Run("simulated", func(t *testing.T) {
		sw := oftest.New(0x42, "p1")
		a, b := start(t, nil), start(t, nil)
		enforcesTheNewestTerm(t, a, b, func() {
			sw.Keep(t, a.addr)
			sw.Keep(t, b.addr)
		})
	})
}

func enforcesTheNewestTerm(t *testing.T, a, b *controller, connect func()) {
	a.SetRole(openflow.Role{Master: true, Generation: 5})
	b.SetRole(openflow.Role{Generation: 5})
	connect()
	sa := a.master(t, 0x42)
	eventually(t, "the follower is a slave", func() bool {
		s := b.Session(0x42)
		if s == nil {
			return false
		}
		role, g := s.Role()
		return role == model.RoleSlave && g == 5
	})
	sb := b.Session(0x42)
	msg := []openflow.Message{add(t, 1, output(1)), add(t, 2, output(1))}
	if err := sb.Bundle(until(t), msg); !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("a slave writes: %v", err)
	}
	if err := sb.Send(until(t), msg[0]); !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("a slave sends: %v", err)
	}
	if err := sa.Bundle(until(t), msg); err != nil {
		t.Fatal(err)
	}
	if got, err := sb.Flows(until(t), openflow.FlowQuery{Table: 0xff}); err != nil || len(got) != 2 {
		t.Errorf("a slave reads %d rules: %v", len(got), err)
	}

	// The follower leads; the old leader is told and can't write.
	b.SetRole(openflow.Role{Master: true, Generation: 6})
	b.master(t, 0x42)
	a.waitStale(t, 1, 6)
	if role, g := sa.Role(); role != model.RoleSlave || g != 6 {
		t.Errorf("the deposed master has role %s, generation %d", role, g)
	}
	if err := sa.Bundle(until(t), msg); !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("the deposed master writes: %v", err)
	}
	if sw := a.db.Snapshot().Switch(0x42); sw == nil || sw.Role != model.RoleSlave || sw.Generation != 6 || sw.LastError == "" {
		t.Errorf("the deposed master's switch: %+v", sw)
	}

	// It asks again with its old term, which is refused, and goes on as it is.
	a.SetRole(openflow.Role{Master: true, Generation: 5})
	a.waitStale(t, 2, 6)
	if sa.Barrier(until(t)) != nil {
		t.Error("the session ended after a refused MASTER request")
	}

	// With a newer term it leads again.
	a.SetRole(openflow.Role{Master: true, Generation: 7})
	b.waitStale(t, 1, 7)
	a.wait(t, "master again", func() bool { return len(a.ups) == 2 })
	if err := sa.Bundle(until(t), msg); err != nil {
		t.Error(err)
	}
	if sw := a.db.Snapshot().Switch(0x42); sw == nil || sw.Role != model.RoleMaster || sw.Generation != 7 || sw.LastError != "" {
		t.Errorf("the master's switch: %+v", sw)
	}

	// A refused SLAVE request leaves a connection that may write: it is ended.
	b.SetRole(openflow.Role{Generation: 6})
	b.wait(t, "the session ends", func() bool { return b.downs[sb] != nil })
	b.recorder.mu.Lock()
	defer b.recorder.mu.Unlock()
	if why := b.downs[sb].Error(); !strings.Contains(why, "STALE") {
		t.Errorf("it ends because %s", why)
	}
}

func TestWithoutARoleNothingIsWrittenAndNothingHeard(t *testing.T) {
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1")
	c := startOn(t, ovs.Listen(), nil)
	ovs.SetController("br0", c.addr)
	eventually(t, "the ports are known", func() bool { return c.Session(0x42) != nil })
	ovs.Ofctl("add-flow", "br0", "actions=controller")
	s := c.Session(0x42)
	ovs.Inject("br0", 1, make([]byte, 60))
	if err := s.Bundle(until(t), []openflow.Message{add(t, 1, output(1))}); !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("it writes: %v", err)
	}
	if got, err := s.Flows(until(t), openflow.FlowQuery{Table: 0xff}); err != nil || len(got) != 1 {
		t.Errorf("it reads %d rules, %v", len(got), err)
	}
	if role, _ := s.Role(); role != model.RoleEqual || c.db.Snapshot().Switch(0x42) != nil {
		t.Errorf("role %s, switch %+v", role, c.db.Snapshot().Switch(0x42))
	}
	c.SetRole(openflow.Role{Master: true, Generation: 1})
	c.master(t, 0x42)
	ovs.Inject("br0", 1, append(make([]byte, 59), 1))
	c.wait(t, "a packet", func() bool { return len(c.packets) > 0 })
	if p := c.packets[0].Data; p[59] != 1 {
		t.Errorf("a packet from before the role was settled was handed over")
	}
}

func TestClosedSwitchConnectsAgain(t *testing.T) {
	_, c, s := real(t)
	s.Close("test")
	c.wait(t, "the session ends", func() bool { return c.downs[s] != nil })
	if next := c.master(t, 0x42); next == s {
		t.Fatal("the old session is handed out")
	}
	if err := s.Bundle(until(t), []openflow.Message{add(t, 1, flow.Output{Port: flow.Local})}); !errors.Is(err, openflow.ErrClosed) && !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("the old session: %v", err)
	}
}
