package reconcile

import (
	"context"
	"slices"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// This file keeps a switch busy while much is still being made for it. A change
// that fits into one bundle is one, whatever is told here: what leaves early is in
// force with the rest of its bundle only.
//
//   - The messages of a bundle leave while the rest of it is encoded.
//   - The first adds of a large plan leave while the rest of it is computed.
//   - The first adds of a bundle leave while the switch works on the one before.

// portion is how many rules are made before they are sent ahead of the rest.
const portion = 1024

// starter is a session that takes the first messages of a bundle before the rest
// is there. *openflow.Session is one; a session that isn't gets whole bundles.
type starter interface {
	Start(maxMessages int) *openflow.Started
	Finish(ctx context.Context, b *openflow.Started, msgs []openflow.Message) error
	Drop(b *openflow.Started)
}

// outgoing is what is made for a switch: messages and what each means once it is
// in force. More than maxBundle are several bundles.
type outgoing struct {
	s       Session
	started *openflow.Started // the first bundle, if a part of it was sent
	ops     []op
	msgs    []openflow.Message
}

// grow makes room for n more messages.
func (o *outgoing) grow(n int) {
	o.ops, o.msgs = slices.Grow(o.ops, n), slices.Grow(o.msgs, n)
}

func (o *outgoing) add(p op, m openflow.Message) {
	o.ops = append(o.ops, p)
	o.msgs = append(o.msgs, m)
}

// full tells whether the first bundle has no room left.
func (o *outgoing) full() bool { return len(o.msgs) >= maxBundle }

// begin sends what is there of the first bundle. It does not wait.
func (o *outgoing) begin() {
	s, ok := o.s.(starter)
	if !ok || len(o.msgs) == 0 {
		return
	}
	if o.started == nil {
		o.started = s.Start(maxBundle)
	}
	o.started.Send(o.msgs[:min(len(o.msgs), maxBundle)])
}

// split takes the first bundle out of o.
func (o *outgoing) split() (first *outgoing) {
	n := min(len(o.ops), maxBundle)
	first = &outgoing{s: o.s, started: o.started, ops: o.ops[:n:n], msgs: o.msgs[:n:n]}
	o.started, o.ops, o.msgs = nil, o.ops[n:], o.msgs[n:]
	return first
}

// finish sends the rest of the one bundle that o is and waits for the answer.
func (o *outgoing) finish(ctx context.Context) error {
	if o.started == nil {
		return sendBundle(ctx, o.s, o.msgs)
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return o.s.(starter).Finish(ctx, o.started, o.msgs)
}

// drop lets the switch forget what was sent.
func (o *outgoing) drop() {
	if o.started != nil {
		o.s.(starter).Drop(o.started)
		o.started = nil
	}
}

// grown notes one more changed claim of the plan and wakes the worker after each
// portion; called with t.mu held.
func (t *target) grown() {
	if t.growth++; t.growth >= portion {
		t.growth = 0
		t.wake()
	}
}

// ahead makes adds until the first bundle of out is full. Called with t.mu held.
func (t *target) ahead(now time.Time, out *outgoing) {
	room := maxBundle - len(out.msgs)
	var early []*cell
	for _, c := range t.dirty.all() {
		if len(early) >= room {
			break
		}
		if c.mayLeaveEarly() {
			early = append(early, c)
		}
	}
	if len(early) == 0 {
		return
	}
	out.grow(room) // for all that may still come
	b := flowBuilder{t: t, now: now, out: out}
	b.portions(early)
}

// mayLeaveEarly tells whether the rule of a cell only adds to what the switch has.
// The rule of a responder does more: its announcement follows it in the same
// bundle. And a rule that leads to a group has to wait for it, since an owner's
// groups are claimed after its rules.
func (c *cell) mayLeaveEarly() bool {
	w := c.winner()
	if w == nil || w.announce != nil || c.missing != "" || c.have || c.inflight {
		return false
	}
	for _, a := range w.actions {
		if _, ok := a.(flow.ToGroup); ok {
			return false
		}
	}
	return true
}

// gather is ahead during a plan. It tells whether there is a bundle to finish or
// to wait for: a small plan is left alone until it is whole.
func (t *target) gather(now time.Time, out *outgoing) bool {
	t.skipped = true
	if len(out.msgs) == 0 && t.dirty.n < portion {
		return false
	}
	t.ahead(now, out)
	return true
}

// commit finishes a bundle. If nothing is made yet of what follows and it is much,
// its first adds are made and sent while the switch works on this one.
func (t *target) commit(ctx context.Context, first, next *outgoing) error {
	if !first.full() || len(next.ops) > 0 {
		next.begin()
		return first.finish(ctx)
	}
	answered := make(chan error, 1)
	go func() { answered <- first.finish(ctx) }() // it ends with its deadline
	defer t.wake()                                // for what it was woken for here
	for {
		t.mu.Lock()
		if t.session == first.s && t.blocked == "" && t.dirty.n >= portion {
			t.ahead(time.Now(), next)
		}
		t.skipped = t.skipped || t.staged // the end of the plan wakes the worker
		t.mu.Unlock()
		next.begin()
		select {
		case err := <-answered:
			return err
		case <-t.signal:
		}
	}
}
