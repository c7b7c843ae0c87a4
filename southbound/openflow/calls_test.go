package openflow

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/wire"
)

type masters chan *Session

func (m masters) MasterUp(s *Session)             { m <- s }
func (masters) SessionDown(*Session, error)       {}
func (masters) PacketIn(*Session, PacketIn)       {}
func (masters) FlowRemoved(*Session, FlowRemoved) {}
func (masters) Stale(*Session, uint64)            {}

func TestNothingIsKeptOfRequestsWithoutAnAnswer(t *testing.T) {
	up := make(masters, 1)
	srv := NewServer(Config{Observer: state.New(), Events: up})
	srv.SetRole(Role{Master: true})
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	sw := oftest.New(1, "p1")
	go func() { srv.serve(ctx, ours); done <- struct{}{} }()
	go func() { _ = sw.Serve(theirs); done <- struct{}{} }()
	s := <-up

	e, err := EncodeRule(flow.Rule{Priority: 1})
	if err != nil {
		t.Fatal(err)
	}
	msgs := []Message{AddFlow(e, 1), AddFlow(e, 2)}
	sw.Freeze()
	soon, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	for range 50 {
		if s.Barrier(soon) == nil || s.Bundle(soon, msgs) == nil {
			t.Fatal("a frozen switch answered")
		}
		if _, err := s.Groups(soon); err == nil {
			t.Fatal("a frozen switch answered")
		}
	}
	stop()
	sw.Thaw()
	later, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if err := s.Barrier(later); err != nil {
		t.Fatalf("after the switch has thawed: %v", err)
	}
	if err := s.Bundle(later, msgs); err != nil {
		t.Fatalf("after the switch has thawed: %v", err)
	}
	s.calls.mu.Lock()
	if w, b := len(s.calls.waiting), len(s.calls.bundles); w != 0 || b != 0 {
		t.Errorf("%d requests and %d bundles are kept", w, b)
	}
	s.calls.mu.Unlock()
	cancel()
	<-done
	<-done
}

func TestTransactionIDsFollowEachOtherAndAreNeverZero(t *testing.T) {
	c := calls{xid: ^uint32(0) - 5}
	if got := c.newXIDs(5); got != ^uint32(0)-4 {
		t.Errorf("first id 0x%x", got)
	}
	if got := c.newXIDs(1); got != 1 {
		t.Errorf("after the last: 0x%x", got)
	}
	c.xid = ^uint32(0) - 5
	if got := c.newXIDs(6); got != 1 {
		t.Errorf("ids that don't fit before the end begin at 0x%x", got)
	}
}

func TestAnswersBelongToTheirBundle(t *testing.T) {
	c := calls{xid: 10}
	a, b := c.newBundle(2), c.newBundle(3)
	for xid, want := range map[uint32]*bundle{10: nil, 11: a, 12: a, 13: a, 14: a, 15: a, 16: a, 17: b, 23: b, 24: nil} {
		if got := c.owner(xid); got != want {
			t.Errorf("id %d belongs to %p", xid, got)
		}
	}
	if !c.refuse(wire.Error{XID: b.message(2), Type: 2, Code: 9}) || !c.refuse(wire.Error{XID: b.commit(), Type: 0xffff, Experimenter: wire.ExperimenterONF, Code: 2313}) {
		t.Fatal("errors of a bundle are nobody's")
	}
	select {
	case <-b.committed:
	default:
		t.Error("a refused commit isn't an answer to it")
	}
	var refused *BundleError
	if !errors.As(c.bundleErr(b), &refused) || len(refused.Refused) != 1 || refused.Refused[0].Index != 2 {
		t.Errorf("error %v", c.bundleErr(b))
	}
	c.refuse(wire.Error{XID: a.open(), Type: 0xffff, Experimenter: wire.ExperimenterONF, Code: 2305})
	if !errors.As(c.bundleErr(a), &refused) || refused.Refused[0] != (Refusal{-1, 0xffff, 2305, "OFPET_BUNDLE_FAILED/OFPBFC_OUT_OF_BUNDLES"}) {
		t.Errorf("error %v", c.bundleErr(a))
	}
	c.refuse(wire.Error{XID: a.commit(), Type: wire.ErrorBadRequest, Code: wire.CodeIsSlave})
	if err := c.bundleErr(a); !errors.Is(err, ErrNotMaster) {
		t.Errorf("a slave's bundle: %v", err)
	}
}
