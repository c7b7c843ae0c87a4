package openflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kvnet/southbound/openflow/wire"
)

// Bundle sends msgs in one ordered, atomic bundle. nil means that all of it is in
// force. A *BundleError or ErrNotMaster means that nothing of it is. Any other
// error after the commit was sent (ErrClosed, the context's) leaves open which of
// the two is true.
//
// A message that the switch can't decode is refused when it is added, and Open
// vSwitch commits the rest of the bundle all the same. Only this side can keep it
// from that, so it must know that all messages were taken in before it commits:
// the answer to the close request says so, since answers come in order. That is
// one more round trip, which ovs-ofctl makes too; bundles don't wait for each
// other, so it costs no throughput. A bundle of one message does without: if that
// is refused, an empty bundle is committed.
func (s *Session) Bundle(ctx context.Context, msgs []Message) error {
	if len(msgs) == 0 {
		return nil
	}
	return s.Finish(ctx, s.Start(len(msgs)), msgs)
}

// Started is a bundle of which a part may have been sent. It is used by one
// goroutine.
type Started struct {
	s     *Session
	b     *bundle
	sent  int    // messages that are in chunk or were queued
	chunk []byte // to be queued next
}

// Start begins a bundle of at most maxMessages, which Finish or Drop has to end. It sends
// nothing.
func (s *Session) Start(maxMessages int) *Started {
	return &Started{s: s, b: s.calls.newBundle(maxMessages)}
}

// Send sends a part of the bundle, while the rest is still made. msgs are all of
// its messages so far. Send doesn't wait: what finds no room in the queue is left
// to Finish. Nothing is in force before that.
func (x *Started) Send(msgs []Message) {
	if !x.s.master() {
		return // Finish says so
	}
	_ = x.add(msgs, func(b []byte) error {
		select {
		case x.s.out.queue <- b:
			return nil
		default:
			return ErrQueueFull
		}
	})
}

// Finish sends those of msgs, which are all messages of the bundle, that were not
// sent yet, and commits the bundle. It returns what Bundle returns.
func (s *Session) Finish(ctx context.Context, x *Started, msgs []Message) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	defer s.calls.endBundle(x.b)
	var err error
	switch {
	case len(msgs) > x.b.n:
		err = fmt.Errorf("the bundle was started for %d messages", x.b.n)
	case s.master():
		err = s.sendRest(ctx, x, msgs)
	default:
		err = ErrNotMaster
		if x.sent > 0 {
			s.discardBundle(x.b)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotMaster):
		return fmt.Errorf("switch %s: %w", s.dpid, err)
	}
	return fmt.Errorf("bundle of %d messages to switch %s: %w", len(msgs), s.dpid, err)
}

// Drop ends a bundle instead of Finish: nothing of it comes into force. It does
// not wait.
func (s *Session) Drop(x *Started) {
	if x.chunk != nil {
		s.discardBundle(x.b)
	}
	s.calls.endBundle(x.b)
}

func (s *Session) sendRest(ctx context.Context, x *Started, msgs []Message) error {
	b := x.b
	err := s.addBundle(ctx, x, msgs)
	if err == nil && len(msgs) > 1 {
		if err = s.await(ctx, b.closed); err == nil {
			err = s.calls.bundleErr(b)
		}
		if err == nil {
			err = s.sendBundleControl(ctx, b, b.commit(), wire.BundleCommitRequest)
		}
	}
	if err != nil {
		s.discardBundle(b)
		return err
	}
	if err := s.await(ctx, b.committed); err != nil {
		return err
	}
	return s.calls.bundleErr(b)
}

// bundleChunk is how many bytes of a bundle are queued at once.
const bundleChunk = 48 << 10

// addBundle sends what is left of the messages and closes the bundle, or commits
// it if there is one message only.
func (s *Session) addBundle(ctx context.Context, x *Started, msgs []Message) error {
	queue := func(b []byte) error { return s.enqueue(ctx, b) }
	if err := x.add(msgs, queue); err != nil {
		return err
	}
	xid, typ := x.b.close(), wire.BundleCloseRequest
	if len(msgs) == 1 {
		xid, typ = x.b.commit(), wire.BundleCommitRequest
	}
	end, err := bundleControl(xid, x.b.id, typ)
	if err != nil {
		return err
	}
	return queue(append(x.chunk, end...))
}

// add puts messages into chunks and queues those that are full.
func (x *Started) add(msgs []Message, queue func([]byte) error) error {
	if x.sent == 0 && x.chunk == nil {
		open, err := bundleControl(x.b.open(), x.b.id, wire.BundleOpenRequest)
		if err != nil {
			return err
		}
		x.chunk = open
	}
	for x.sent < len(msgs) {
		m := msgs[x.sent]
		if len(x.chunk)+bundleAddLen+m.Len() > bundleChunk {
			if err := queue(x.chunk); err != nil {
				return err
			}
			x.chunk = make([]byte, 0, bundleChunk)
		}
		x.chunk = appendBundleAdd(x.chunk, x.b.message(x.sent), x.b.id, m)
		x.sent++
	}
	return nil
}

func (s *Session) sendBundleControl(ctx context.Context, b *bundle, xid uint32, typ uint16) error {
	m, err := bundleControl(xid, b.id, typ)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, m)
}

// discardBundle lets the switch forget a bundle that won't be committed. It
// doesn't wait: a switch forgets an idle bundle by itself after a while.
func (s *Session) discardBundle(b *bundle) {
	m, err := bundleControl(b.discard(), b.id, wire.BundleDiscardRequest)
	if err != nil {
		return
	}
	select {
	case s.out.queue <- m:
	default:
	}
}

// await waits for the switch's answer.
func (s *Session) await(ctx context.Context, answered <-chan struct{}) error {
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for an answer: %w", ctx.Err())
	case <-s.done:
		select {
		case <-answered:
			return nil
		default:
			return s.closedErr()
		}
	}
}

// bundle is a bundle on its way. Its transaction ids follow each other: open,
// close, commit, discard, then one for each message that it may have.
type bundle struct {
	id    uint32
	first uint32
	n     int // messages at most
	// closed and committed are closed when the switch has answered the close and
	// the commit request, be it with an error.
	closed, committed chan struct{}

	// Guarded by calls.mu.
	refused   []Refusal
	notMaster bool
}

func (b *bundle) open() uint32            { return b.first }
func (b *bundle) close() uint32           { return b.first + 1 }
func (b *bundle) commit() uint32          { return b.first + 2 }
func (b *bundle) discard() uint32         { return b.first + 3 }
func (b *bundle) message(i int) uint32    { return b.first + 4 + uint32(i) }
func (b *bundle) isMessage(x uint32) bool { return x >= b.message(0) && x < b.message(b.n) }
func (b *bundle) owns(xid uint32) bool    { return xid >= b.first && xid < b.message(b.n) }

func (c *calls) newBundle(n int) *bundle {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bundle++
	b := &bundle{id: c.bundle, first: c.newXIDs(uint32(n) + 4), n: n, closed: make(chan struct{}), committed: make(chan struct{})}
	c.bundles = append(c.bundles, b)
	return b
}

func (c *calls) endBundle(b *bundle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bundles = slices.DeleteFunc(c.bundles, func(o *bundle) bool { return o == b })
}

// owner is the bundle that xid belongs to, or nil. c.mu is held.
func (c *calls) owner(xid uint32) *bundle {
	for _, b := range c.bundles {
		if b.owns(xid) {
			return b
		}
	}
	return nil
}

// bundleReply takes in the answer to a bundle control message.
func (c *calls) bundleReply(xid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.owner(xid); b != nil {
		b.answered(xid)
	}
}

// answered notes the answer to a request; a second answer changes nothing.
func (b *bundle) answered(xid uint32) {
	ch := b.closed
	switch xid {
	case b.close():
	case b.commit():
		ch = b.committed
	default:
		return
	}
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// refuse takes in an error about a part of a bundle. It is false if xid belongs
// to no bundle.
func (c *calls) refuse(e wire.Error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.owner(e.XID)
	switch {
	case b == nil:
		return false
	case e.XID == b.discard():
		return true
	case e.Type == wire.ErrorBadRequest && e.Code == wire.CodeIsSlave:
		b.notMaster = true
	case len(b.refused) <= b.n:
		r := Refusal{Index: -1, Type: e.Type, Code: e.Code, Text: e.Text()}
		if b.isMessage(e.XID) {
			r.Index = int(e.XID - b.message(0))
		}
		b.refused = append(b.refused, r)
	}
	b.answered(e.XID)
	return true
}

// bundleErr is what became of the bundle as far as the switch has answered.
func (c *calls) bundleErr(b *bundle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.notMaster {
		return ErrNotMaster
	}
	if len(b.refused) == 0 {
		return nil
	}
	// "The bundle failed" says nothing beside the message that made it fail.
	isWhole := func(r Refusal) bool { return r.Index < 0 }
	if messages := slices.DeleteFunc(slices.Clone(b.refused), isWhole); len(messages) > 0 {
		return &BundleError{messages}
	}
	return &BundleError{slices.Clone(b.refused)}
}
