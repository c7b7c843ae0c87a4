package openflow_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/wire"
)

func asMaster(c *controller) *controller {
	c.SetRole(openflow.Role{Master: true, Generation: 1})
	return c
}

func TestHandshakeComesInOrder(t *testing.T) {
	c := asMaster(start(t, nil))
	r := dial(t, c)
	h, body := r.expect(wire.TypeHello)
	if h.Version != 4 || !bytes.Equal(body, []byte{0, 1, 0, 8, 0, 0, 0, 0x10}) {
		t.Errorf("hello of version %d with %x: only 1.3 may be offered", h.Version, body)
	}
	r.send(hello())
	h, _ = r.expect(wire.TypeFeaturesRequest)
	r.send(featuresReply(h.XID, 7))
	if _, body = r.expect(wire.TypeSetConfig); !bytes.Equal(body, []byte{0, 0, 0xff, 0xff}) {
		t.Errorf("set-config %x", body)
	}
	h, body = r.expect(wire.TypeMultipartRequest)
	if !bytes.Equal(body, []byte{0, 13, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("multipart request %x", body)
	}
	if c.Session(7) != nil {
		t.Error("a session without ports is handed out")
	}
	port := make([]byte, 64)
	port[3], port[16] = 9, 'p'
	// Two parts, and a port-status between them, which the list has already.
	r.send(message(wire.TypeMultipartReply, h.XID, append([]byte{0, 13, 0, 1, 0, 0, 0, 0}, port...)...))
	r.send(message(wire.TypePortStatus, 0, append(make([]byte, 8), port...)...))
	port[3], port[16] = 10, 'q'
	r.send(message(wire.TypeMultipartReply, h.XID, append([]byte{0, 13, 0, 0, 0, 0, 0, 0}, port...)...))
	h, body = r.expect(wire.TypeRoleRequest)
	if want := []byte{0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}; !bytes.Equal(body, want) {
		t.Errorf("role request %x", body)
	}
	if c.db.Snapshot().Switch(7) != nil {
		t.Error("the switch is reported before its role is settled")
	}
	r.send(message(wire.TypeRoleReply, h.XID, body...))
	s := c.master(t, 7)
	snap := c.db.Snapshot()
	if sw := snap.Switch(7); !sw.Connected || sw.Address != r.LocalAddr().String() || s.RemoteAddr() != sw.Address {
		t.Errorf("switch %+v", sw)
	}
	if p, q := snap.SwitchPort(7, "p"), snap.SwitchPort(7, "q"); p == nil || p.Number != 9 || q == nil || q.Number != 10 {
		t.Errorf("ports %+v %+v", p, q)
	}
}

func TestVersions(t *testing.T) {
	c := asMaster(start(t, nil))
	for name, m := range map[string][]byte{
		"1.0 without a bitmap":           {1, 0, 0, 8, 0, 0, 0, 1},
		"1.5 with a bitmap without 1.3":  {6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x40},
		"1.3 with a bitmap without 1.3":  {4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x02},
		"1.5 without 1.3, other element": {6, 0, 0, 24, 0, 0, 0, 1, 0, 9, 0, 8, 1, 2, 3, 4, 0, 1, 0, 8, 0, 0, 0, 0x40},
	} {
		r := dial(t, c)
		r.send(m)
		if h, body := r.expect(wire.TypeError); !bytes.HasPrefix(body, []byte{0, 0, 0, 0}) || h.Version != 4 {
			t.Errorf("%s: error %x", name, body)
		}
		r.expectEnd()
	}
	for name, m := range map[string][]byte{
		"1.3 without a bitmap":     {4, 0, 0, 8, 0, 0, 0, 1},
		"1.5 without a bitmap":     {6, 0, 0, 8, 0, 0, 0, 1},
		"1.5 with a bitmap":        {6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x72},
		"1.3 with unknown element": {4, 0, 0, 20, 0, 0, 0, 1, 0, 77, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8},
	} {
		r := dial(t, c)
		r.send(m)
		if h, _ := r.expect(wire.TypeFeaturesRequest); h.Version != 4 {
			t.Errorf("%s: goes on with version %d", name, h.Version)
		}
	}
}

// TestGarbageCostsTheConnectionOnly sends what no switch sends, at each step.
func TestGarbageCostsTheConnectionOnly(t *testing.T) {
	c := asMaster(start(t, nil))
	good := oftest.New(0x99)
	good.Connect(t, c.addr)
	other := c.master(t, 0x99)
	shortMatch := append(make([]byte, 16), 0, 1, 0, 99)
	for name, play := range map[string]func(*raw){
		"http":                       func(r *raw) { r.send([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) },
		"no hello":                   func(r *raw) { r.send(message(wire.TypeFeaturesReply, 1)) },
		"a hello's element too long": func(r *raw) { r.send(message(wire.TypeHello, 1, 0, 1, 0, 80)) },
		"a header of no length":      func(r *raw) { r.send([]byte{4, 0, 0, 0, 0, 0, 0, 0}) },
		"short features":             func(r *raw) { r.send(hello()); h, _ := r.expect(5); r.send(message(6, h.XID, 1, 2, 3)) },
		"datapath id 0":              func(r *raw) { r.send(hello()); h, _ := r.expect(5); r.send(featuresReply(h.XID, 0)) },
		"an error to the handshake":  func(r *raw) { r.send(hello()); h, _ := r.expect(5); r.send(message(1, h.XID, 0, 1, 0, 1)) },
		"a short error":              func(r *raw) { r.master(); r.send(message(1, 1, 0)) },
		"another version":            func(r *raw) { r.master(); r.send([]byte{1, 2, 0, 8, 0, 0, 0, 0}) },
		"a short packet-in":          func(r *raw) { r.master(); r.send(message(wire.TypePacketIn, 0, shortMatch...)) },
		"a short flow-removed":       func(r *raw) { r.master(); r.send(message(wire.TypeFlowRemoved, 0, 1, 2)) },
		"a short port-status":        func(r *raw) { r.master(); r.send(message(wire.TypePortStatus, 0, make([]byte, 71)...)) },
		"a short role reply":         func(r *raw) { r.master(); r.send(message(wire.TypeRoleReply, 0, 0)) },
		"a short multipart reply":    func(r *raw) { r.master(); r.send(message(wire.TypeMultipartReply, 0, 0)) },
		"a short experimenter":       func(r *raw) { r.master(); r.send(message(wire.TypeExperimenter, 0, 0)) },
		"a length beyond the stream": func(r *raw) { r.master(); r.send([]byte{4, 10, 0xff, 0xff, 0, 0, 0, 0}); r.Close() },
		"a role that wasn't asked":   func(r *raw) { r.handshake(); h, _ := r.expect(24); r.send(message(25, h.XID, make([]byte, 16)...)) },
		"a refused role":             func(r *raw) { r.handshake(); h, _ := r.expect(24); r.send(message(1, h.XID, 0, 11, 0, 1)) },
		"a short list of ports": func(r *raw) {
			r.send(hello())
			h, _ := r.expect(5)
			r.send(featuresReply(h.XID, 8))
			h, _ = r.expect(18)
			r.send(message(19, h.XID, make([]byte, 30)...))
		},
		"an auxiliary connection": func(r *raw) { r.send(hello()); h, _ := r.expect(5); f := featuresReply(h.XID, 8); f[21] = 1; r.send(f) },
		"another list than the ports": func(r *raw) {
			r.send(hello())
			h, _ := r.expect(5)
			r.send(featuresReply(h.XID, 8))
			h, _ = r.expect(18)
			r.send(message(19, h.XID, 0, 1, 0, 0, 0, 0, 0, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := dial(t, c)
			play(r)
			if name != "a length beyond the stream" {
				r.expectEnd()
			}
			eventually(t, "the session is gone", func() bool { return c.Session(8) == nil })
		})
	}
	if err := other.Bundle(until(t), []openflow.Message{add(t, 1, output(1))}); err != nil {
		t.Errorf("another switch's session: %v", err)
	}
}

func TestUnknownMessagesAreIgnored(t *testing.T) {
	c := asMaster(start(t, nil))
	r := dial(t, c)
	r.master()
	s := c.master(t, 8)
	r.send(
		message(99, 5, 1, 2, 3), message(wire.TypeHello, 5), message(wire.TypeEchoReply, 5), message(wire.TypeBarrierReply, 12345),
		message(wire.TypeMultipartReply, 12345, 0, 1, 0, 0, 0, 0, 0, 0), message(wire.TypeRoleReply, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
		message(wire.TypeExperimenter, 1, 0, 0, 0x23, 0x20, 0, 0, 0, 99, 1), message(wire.TypeExperimenter, 1, 0x4f, 0x4e, 0x46, 0, 0, 0, 0, 1),
		message(wire.TypeExperimenter, 1, 0x4f, 0x4e, 0x46, 0, 0, 0, 0x08, 0xfc, 0, 0, 0, 1, 0, 5, 0, 0), message(wire.TypeError, 77, 0, 99, 0, 1),
	)
	done := make(chan error, 1)
	go func() { done <- s.Barrier(until(t)) }()
	h, _ := r.expect(wire.TypeBarrierRequest)
	r.send(message(wire.TypeBarrierReply, h.XID))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestEchoOvertakesWhatWaits(t *testing.T) {
	c := asMaster(start(t, nil))
	r := dial(t, c)
	r.master()
	s := c.master(t, 8)
	// The switch doesn't read until the queue is full.
	ctx, big, n := until(t), packetOut(t, make([]byte, 20000)), 0
	for {
		err := s.Send(ctx, big)
		if errors.Is(err, openflow.ErrQueueFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	sizes := []int{0, 5, 65527}
	for _, size := range sizes {
		r.send(message(wire.TypeEchoRequest, uint32(1000+size), bytes.Repeat([]byte{7}, size)...))
	}
	before, answers := 0, 0
	for answers < len(sizes) {
		h, m, err := r.r.Next()
		switch {
		case err != nil:
			t.Fatal(err)
		case h.Type == wire.TypePacketOut:
			before++
		case h.Type == wire.TypeEchoReply:
			size := sizes[answers]
			if h.XID != uint32(1000+size) || !bytes.Equal(m[8:], bytes.Repeat([]byte{7}, size)) {
				t.Errorf("echo of %d bytes: transaction id %d, %d bytes", size, h.XID, len(m)-8)
			}
			answers++
		}
	}
	// What the kernel had taken already can't be overtaken, the queue can.
	if before > n-500 {
		t.Errorf("the echoes were answered after %d of %d messages", before, n)
	}
}

func TestSilentSwitchIsAskedAndThenGivenUp(t *testing.T) {
	c := asMaster(start(t, func(c *openflow.Config) {
		c.EchoInterval, c.EchoTimeout = 50*time.Millisecond, 300*time.Millisecond
	}))
	r := dial(t, c)
	r.master()
	s := c.master(t, 8)
	for range 4 {
		h, _ := r.expect(wire.TypeEchoRequest)
		r.send(message(wire.TypeEchoReply, h.XID))
	}
	if s.Barrier(contextFor(t, 10*time.Millisecond)) == nil || c.Session(8) == nil {
		t.Fatal("the session ended while the switch answered")
	}
	r.expect(wire.TypeEchoRequest)
	c.wait(t, "the session ends", func() bool { return c.downs[s] != nil })
}

func contextFor(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestConnectionThatSaysNothingIsEnded(t *testing.T) {
	c := asMaster(start(t, func(c *openflow.Config) { c.HandshakeTimeout = 100 * time.Millisecond }))
	r := dial(t, c)
	r.expectEnd()
	r = dial(t, c)
	r.send(hello())
	r.expectEnd()
	r = dial(t, c)
	r.handshake() // and no answer to the role request
	r.expectEnd()
}

func TestSwitchThatDoesNotReadBlocksNobody(t *testing.T) {
	c := asMaster(start(t, func(c *openflow.Config) {
		c.WriteTimeout, c.QueueLen = 500*time.Millisecond, 8
	}))
	frozen, good := oftest.New(1), oftest.New(2)
	frozen.Connect(t, c.addr)
	good.Connect(t, c.addr)
	s, other := c.master(t, 1), c.master(t, 2)
	frozen.Freeze()
	big := packetOut(t, make([]byte, 60000))
	full, ctx := false, until(t)
	for done := false; !done; {
		if err := s.Send(ctx, big); errors.Is(err, openflow.ErrQueueFull) {
			full = true
		}
		select {
		case <-s.Done():
			done = true
		default:
		}
	}
	if !full {
		t.Error("the queue of a switch that doesn't read never was full")
	}
	if err := s.Bundle(contextFor(t, 50*time.Millisecond), []openflow.Message{big, big}); err == nil {
		t.Error("a bundle to a frozen switch succeeded")
	}
	c.SetRole(openflow.Role{Master: true, Generation: 2}) // doesn't wait
	c.wait(t, "the frozen switch's session ends", func() bool { return c.downs[s] != nil && strings.Contains(c.downs[s].Error(), "write") })
	c.wait(t, "the other switch confirms", func() bool {
		n := 0
		for _, u := range c.ups {
			if u == other {
				n++
			}
		}
		return n == 2
	})
	if err := other.Bundle(until(t), []openflow.Message{add(t, 1, output(1))}); err != nil {
		t.Errorf("the other switch: %v", err)
	}
	if err := s.Send(until(t), big); !errors.Is(err, openflow.ErrClosed) {
		t.Errorf("send to an ended session: %v", err)
	}
	if _, err := s.Flows(until(t), openflow.FlowQuery{Table: 0xff}); !errors.Is(err, openflow.ErrClosed) {
		t.Errorf("read from an ended session: %v", err)
	}
}

func TestSecondSessionFromAnotherAddressIsRefused(t *testing.T) {
	c := asMaster(start(t, nil))
	r := dial(t, c)
	r.master()
	s := c.master(t, 8)
	thief := dialFrom(t, c, "127.0.0.2")
	thief.send(hello())
	h, _ := thief.expect(wire.TypeFeaturesRequest)
	thief.send(featuresReply(h.XID, 8))
	thief.expectEnd()
	if got := c.Session(8); got != s {
		t.Errorf("session %v", got)
	}
	c.recorder.mu.Lock()
	if len(c.downs) != 0 {
		t.Error("the refused connection is reported as a session")
	}
	c.recorder.mu.Unlock()
	// When the first is gone, another address is as good.
	r.Close()
	c.wait(t, "the first session ends", func() bool { return c.downs[s] != nil })
	next := dialFrom(t, c, "127.0.0.2")
	next.master()
	c.master(t, 8)
}

func TestSecondSessionFromTheSameAddressReplacesTheFirst(t *testing.T) {
	c := asMaster(start(t, nil))
	first := dial(t, c)
	first.master()
	s := c.master(t, 8)
	second := dial(t, c)
	second.master()
	first.expectEnd()
	next := c.master(t, 8)
	if next == s || c.Session(8) != next {
		t.Error("the first session stays")
	}
	if sw := c.db.Snapshot().Switch(8); !sw.Connected || sw.Address != second.LocalAddr().String() {
		t.Errorf("switch %+v", sw)
	}
	select {
	case <-s.Done():
	default:
		t.Error("the first session isn't done")
	}
}

// slowEnd keeps the end of a session from being over.
type slowEnd struct {
	*recorder
	first           *sync.Once
	ending, release chan struct{}
}

func (e slowEnd) SessionDown(s *openflow.Session, err error) {
	e.first.Do(func() { close(e.ending) })
	<-e.release
	e.recorder.SessionDown(s, err)
}

func TestReplacingSessionBeginsWhenTheFirstIsOver(t *testing.T) {
	e := slowEnd{first: &sync.Once{}, ending: make(chan struct{}), release: make(chan struct{})}
	c := asMaster(start(t, func(cfg *openflow.Config) {
		e.recorder = cfg.Events.(*recorder)
		cfg.Events = e
	}))
	first := dial(t, c)
	first.master()
	s := c.master(t, 8)
	second := dial(t, c)
	second.send(hello())
	h, _ := second.expect(wire.TypeFeaturesRequest)
	second.send(featuresReply(h.XID, 8))
	<-e.ending
	if err := second.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if h, _, err := second.r.Next(); err == nil {
		t.Errorf("the second session goes on with a message of type %d", h.Type)
	}
	close(e.release)
	c.wait(t, "the first session is over", func() bool { return c.downs[s] != nil })
	second.Close()
	eventually(t, "the second session is gone", func() bool { return c.Session(8) == nil })
}

func TestOnlyTheNewestRoleCounts(t *testing.T) {
	c := start(t, nil)
	r := dial(t, c)
	r.handshake()
	eventually(t, "the ports are known", func() bool { return c.Session(8) != nil })
	s := c.Session(8)
	c.SetRole(openflow.Role{Master: true, Generation: 5})
	h1, b1 := r.expect(wire.TypeRoleRequest)
	c.SetRole(openflow.Role{Generation: 6})
	h2, b2 := r.expect(wire.TypeRoleRequest)
	r.send(message(wire.TypeRoleReply, h1.XID, b1...), message(wire.TypeRoleReply, h2.XID, b2...))
	eventually(t, "the role is settled", func() bool { role, g := s.Role(); return role == model.RoleSlave && g == 6 })
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	if len(c.ups) != 0 {
		t.Error("a role that isn't wanted any more was reported")
	}
}

func TestANewTermOnItsWayIsNotStale(t *testing.T) {
	c := asMaster(start(t, nil))
	r := dial(t, c)
	r.master()
	s := c.master(t, 8)
	// Another server led with term 2 for a moment, and this one leads with term 3.
	c.SetRole(openflow.Role{Master: true, Generation: 3})
	h, body := r.expect(wire.TypeRoleRequest)
	if err := s.Send(until(t), packetOut(t, make([]byte, 60))); !errors.Is(err, openflow.ErrNotMaster) {
		t.Errorf("it writes under a term that isn't confirmed: %v", err)
	}
	status := []byte{0x4f, 0x4e, 0x46, 0, 0, 0, 0x07, 0x77, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}
	r.send(message(wire.TypeExperimenter, 0, status...), message(wire.TypeRoleReply, h.XID, body...))
	c.wait(t, "master again", func() bool { return len(c.ups) == 2 })
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	if len(c.stale) != 0 {
		t.Errorf("stale %d is reported", c.stale)
	}
}

func TestRequestsThatTheSwitchRefuses(t *testing.T) {
	c := asMaster(start(t, nil))
	r := dial(t, c)
	r.master()
	s := c.master(t, 8)
	done := make(chan error, 1)
	go func() { done <- s.Barrier(until(t)) }()
	h, _ := r.expect(wire.TypeBarrierRequest)
	r.send(message(wire.TypeError, h.XID, 0, 1, 0, 5))
	var refused *openflow.RefusedError
	if err := <-done; !errors.As(err, &refused) || refused.Text != "OFPET_BAD_REQUEST/OFPBRC_EPERM" {
		t.Errorf("barrier: %v", err)
	}
	go func() { _, err := s.Groups(until(t)); done <- err }()
	h, _ = r.expect(wire.TypeMultipartRequest)
	r.send(message(wire.TypeMultipartReply, h.XID, 0, 1, 0, 0, 0, 0, 0, 0))
	if err := <-done; err == nil {
		t.Error("rules instead of groups are accepted")
	}
	go func() { _, err := s.Flows(until(t), openflow.FlowQuery{}); done <- err }()
	h, _ = r.expect(wire.TypeMultipartRequest)
	r.send(message(wire.TypeMultipartReply, h.XID, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 1))
	if err := <-done; err == nil {
		t.Error("garbage is accepted")
	}
	c.wait(t, "a switch that sends garbage loses its connection", func() bool { return c.downs[s] != nil })
}
