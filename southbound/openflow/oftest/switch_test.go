package oftest_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// events passes on what the server reports.
type events struct {
	up      chan *openflow.Session
	down    chan error
	packets chan openflow.PacketIn
	removed chan openflow.FlowRemoved
	stale   chan uint64
}

func (e events) MasterUp(s *openflow.Session)                            { e.up <- s }
func (e events) SessionDown(_ *openflow.Session, err error)              { e.down <- err }
func (e events) PacketIn(_ *openflow.Session, p openflow.PacketIn)       { e.packets <- p }
func (e events) FlowRemoved(_ *openflow.Session, f openflow.FlowRemoved) { e.removed <- f }
func (e events) Stale(_ *openflow.Session, generation uint64)            { e.stale <- generation }

type lab struct {
	events
	db   *state.DB
	addr net.Addr
	sw   *oftest.Switch
	s    *openflow.Session
}

// connect makes a switch with a master.
func connect(t *testing.T) *lab {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{
		events: events{make(chan *openflow.Session, 9), make(chan error, 9), make(chan openflow.PacketIn, 9), make(chan openflow.FlowRemoved, 9), make(chan uint64, 9)},
		db:     state.New(), addr: ln.Addr(), sw: oftest.New(7, "p1", "p2"),
	}
	srv := openflow.NewServer(openflow.Config{Observer: l.db, Events: l.events})
	srv.SetRole(openflow.Role{Master: true, Generation: 3})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	l.sw.Keep(t, l.addr)
	l.s = take(t, l.up)
	return l
}

func take[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(20 * time.Second):
		t.Fatal("waited in vain")
	}
	return v
}

func (l *lab) add(t *testing.T, rules ...flow.Rule) error {
	t.Helper()
	var msgs []openflow.Message
	for i, r := range rules {
		e, err := openflow.EncodeRule(r)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, openflow.AddFlow(e, uint64(i+1)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return l.s.Bundle(ctx, msgs)
}

func rule(priority uint16, port uint32) flow.Rule {
	return flow.Rule{Priority: priority, Actions: []flow.Action{flow.Output{Port: flow.NumberedPort(port)}}}
}

func TestWhatASwitchHoldsOutlivesItsConnection(t *testing.T) {
	l := connect(t)
	if err := l.add(t, rule(1, 1), rule(2, 2)); err != nil {
		t.Fatal(err)
	}
	l.sw.Disconnect()
	if err := take(t, l.down); err == nil {
		t.Error("a lost connection has no reason")
	}
	take(t, l.up)
	if got := l.sw.Rules(); len(got) != 2 || got[0].Priority != 2 {
		t.Errorf("rules %v", got)
	}
	if got := l.sw.Cookies(); len(got) != 2 || got[0] != 2 || got[1] != 1 {
		t.Errorf("cookies %v", got)
	}
	if c := l.sw.Counts(); c.FlowMods != 2 || c.Bundles != 1 {
		t.Errorf("counts %+v", c)
	}
	l.sw.Wipe()
	if got := l.sw.Rules(); len(got) != 0 {
		t.Errorf("rules after a restart %v", got)
	}
}

func TestChangesByHand(t *testing.T) {
	l := connect(t)
	if err := l.add(t, rule(1, 1), rule(2, 1)); err != nil {
		t.Fatal(err)
	}
	if n := l.sw.RemoveFlows(func(r flow.Rule) bool { return r.Priority == 1 }); n != 1 {
		t.Errorf("%d rules removed", n)
	}
	if f := take(t, l.removed); f.Cookie != 1 || f.Rule.Priority != 1 {
		t.Errorf("removed %+v", f)
	}
	other, err := openflow.EncodeRule(rule(9, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.sw.ChangeFlows(func(flow.Rule, []byte) []byte { return other.Instructions }); err != nil {
		t.Fatal(err)
	}
	if got := l.sw.Rules(); len(got) != 1 || !got[0].SameEffect(rule(2, 2)) || l.sw.Cookies()[0] != 2 {
		t.Errorf("rules %v", got)
	}
	if l.sw.ChangeFlows(func(flow.Rule, []byte) []byte { return []byte{1} }) == nil {
		t.Error("garbage is taken as actions")
	}
}

func TestPacketsAndPorts(t *testing.T) {
	l := connect(t)
	l.sw.PacketIn(2, 5, 77, []byte("frame"))
	if p := take(t, l.packets); p.InPort != 2 || p.Table != 5 || p.Cookie != 77 || !bytes.Equal(p.Data, []byte("frame")) {
		t.Errorf("packet %+v", p)
	}
	m, err := openflow.PacketOut(flow.NumberedPort(2), []byte("out"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := errors.Join(l.s.Send(ctx, m), l.s.Barrier(ctx)); err != nil {
		t.Fatal(err)
	}
	if got := l.sw.PacketOuts(); len(got) != 1 || got[0].Port != 2 || string(got[0].Frame) != "out" {
		t.Errorf("packets out %+v", got)
	}
	port := func(name string, number uint32, enabled bool) {
		t.Helper()
		err := l.db.Wait(ctx, func(s state.Snapshot) bool {
			p := s.SwitchPort(7, name)
			return number == 0 && p == nil || p != nil && p.Number == number && p.Enabled == enabled
		})
		if err != nil {
			t.Errorf("port %s never is %d, enabled %v", name, number, enabled)
		}
	}
	port("p1", 1, true)
	l.sw.AddPort(1, "p1", false)
	port("p1", 1, false)
	l.sw.AddPort(9, "p9", true)
	port("p9", 9, true)
	l.sw.RemovePort(9)
	port("p9", 0, false)
}

func TestRefusalsOnDemand(t *testing.T) {
	l := connect(t)
	for _, atAdd := range []bool{true, false} {
		l.sw.Refuse(func(m oftest.Mod) *oftest.Refusal {
			if m.Rule.Priority == 2 {
				return &oftest.Refusal{Type: 5, Code: 1, AtAdd: atAdd}
			}
			return nil
		})
		err := l.add(t, rule(1, 1), rule(2, 1), rule(3, 1))
		var refused *openflow.BundleError
		if !errors.As(err, &refused) || refused.Refused[0].Index != 1 || refused.Refused[0].Text != "OFPET_FLOW_MOD_FAILED/OFPFMFC_TABLE_FULL" {
			t.Errorf("at the add %v: %v", atAdd, err)
		}
		if got := l.sw.Rules(); len(got) != 0 {
			t.Errorf("at the add %v: rules %v", atAdd, got)
		}
	}
	l.sw.Refuse(nil)
	if err := l.add(t, rule(2, 1)); err != nil {
		t.Error(err)
	}
}

func TestAnotherMaster(t *testing.T) {
	l := connect(t)
	l.sw.SetGeneration(8)
	if g := take(t, l.stale); g != 8 {
		t.Errorf("generation %d", g)
	}
	if err := l.add(t, rule(1, 1)); !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("a deposed master writes: %v", err)
	}
}

func TestFrozenSwitchAnswersWhenItThaws(t *testing.T) {
	l := connect(t)
	l.sw.Freeze()
	soon, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if l.s.Barrier(soon) == nil {
		t.Error("a frozen switch answers")
	}
	l.sw.Thaw()
	if err := l.add(t, rule(1, 1), rule(2, 1)); err != nil {
		t.Error(err)
	}
}
