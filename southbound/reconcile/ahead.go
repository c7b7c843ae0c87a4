package reconcile

import (
	"context"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// This file keeps a switch busy while much is still being made for it. A change
// that fits into one bundle is one, whatever is told here.
//
//   - The messages of a bundle leave while the rest of it is encoded.
//   - A plan that changes more than fits into one bundle is several bundles anyway:
//     its first adds leave while the rest of it is computed. Deletes come last, as
//     always.

// portion is how many rules are encoded before the first of them are sent.
const portion = 1024

// starter is a session that takes the first messages of a bundle before the rest
// is there. *openflow.Session is one; a session that isn't gets whole bundles.
type starter interface {
	Start(maxMessages int) *openflow.Started
	Finish(ctx context.Context, b *openflow.Started, msgs []openflow.Message) error
}

// head is the bundle that is sent while it is made. Its zero value sends nothing.
type head struct {
	s       starter
	started *openflow.Started
}

func newHead(s Session) *head {
	h := &head{}
	h.s, _ = s.(starter)
	return h
}

// send gives away what is there of the first bundle. It does not wait.
func (h *head) send(msgs []openflow.Message) {
	if h == nil || h.s == nil {
		return
	}
	if h.started == nil {
		h.started = h.s.Start(maxBundle)
	}
	h.started.Send(msgs[:min(len(msgs), maxBundle)])
}

// finish sends the rest of the bundle and waits for the answer.
func (h *head) finish(ctx context.Context, s Session, msgs []openflow.Message) error {
	if h.started == nil {
		return sendBundle(ctx, s, msgs)
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	b := h.started
	h.started = nil
	return h.s.Finish(ctx, b, msgs)
}

// grown notes one more changed claim of the plan and wakes the worker when they
// are more than one bundle; called with t.mu held.
func (t *target) grown() {
	if t.growth++; t.growth >= maxBundle {
		t.growth = 0
		t.wake()
	}
}

// outgrown tells whether a plan that is under way is larger than one bundle.
func (t *target) outgrown() bool { return t.staged && t.dirty.n >= maxBundle }

// leadsNowhere tells whether the rule of a cell leads to a group that nobody has
// claimed yet: an owner's groups are claimed after its rules.
func (t *target) leadsNowhere(c *cell) bool {
	for _, a := range c.winner().actions {
		if g, ok := a.(flow.ToGroup); ok && t.groups[g.ID] == nil {
			return true
		}
	}
	return false
}
