package reconcile

import (
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// done records that the messages are in force; called with t.mu held. It returns
// the responders that came and went.
func (t *target) done(ops []op) (came, went []responder) {
	var sent [opKinds]int
	for i := range ops {
		o := &ops[i]
		switch o.kind {
		case opFlowAdd:
			fresh := !o.c.have || o.c.haveInPort != o.inPort || news(o.c.haveAnn, o.ann)
			t.hold(o.c, o.cookie)
			o.c.haveInPort, o.c.haveOwner = o.inPort, o.owner
			if o.c.haveAnn != nil && (o.ann == nil || responderOf(o.c.haveAnn) != responderOf(o.ann)) {
				went = append(went, responder{key: responderOf(o.c.haveAnn), c: o.c})
			}
			o.c.haveAnn = o.ann
			if o.ann != nil && fresh {
				came = append(came, responder{key: responderOf(o.ann), c: o.c})
			}
			t.settle(o.c)
		case opFlowDelete:
			t.absent(o.c)
			t.settle(o.c)
		case opGroupAdd, opGroupModify:
			if !o.g.have {
				t.groupsIn++
			}
			o.g.have, o.g.got, o.g.owner, o.g.inflight = true, *o.group, o.owner, false
			if len(o.g.claims) == 0 {
				t.renewGroup(o.g)
			}
		case opGroupDelete:
			if o.g.have {
				t.groupsIn--
			}
			o.g.have, o.g.inflight = false, false
			if len(o.g.claims) > 0 {
				t.renewGroup(o.g)
			} else if !o.g.dirty {
				delete(t.groups, o.g.id)
			}
		}
		sent[o.kind]++
	}
	t.e.metrics.sent(sent)
	return came, went
}

// settle ends the flight of a cell: what was asked for meanwhile stays to be
// done, and what nobody wants any more goes.
func (t *target) settle(c *cell) {
	c.inflight = false
	if c.dirty {
		return
	}
	if len(c.claims) == 0 {
		if c.have {
			t.dirty.mark(c)
		} else {
			t.drop(c)
		}
	}
}

// failed puts back what was not answered with success; called with t.mu held.
func (t *target) failed(ops []op) {
	for i := range ops {
		o := &ops[i]
		switch o.kind {
		case opFlowAdd, opFlowDelete:
			o.c.inflight = false
			t.dirty.mark(o.c)
		case opGroupAdd, opGroupModify, opGroupDelete:
			o.g.inflight = false
			o.g.dirty = true
			t.dirtyGroups[o.g] = struct{}{}
		case opOrphan:
			t.orphans[orphan{o.table, o.cookie}] = struct{}{}
		case opOrphanGroup:
			t.orphanGrp[o.group.ID] = *o.group
		}
	}
}

// refusedBy sets the owners of refused messages aside. It reports whether it
// found an owner for every refusal: otherwise nothing would change by sending
// the rest again.
func (t *target) refusedBy(ops []op, be *openflow.BundleError, now time.Time) bool {
	progress := false
	for _, r := range be.Refused {
		if r.Index < 0 || r.Index >= len(ops) {
			continue
		}
		o := ops[r.Index]
		if o.owner == "" {
			continue
		}
		t.refuse(o.owner, r.Text, now)
		progress = true
	}
	return progress
}

// refuse sets an owner aside on this switch: its old rules stay, and the new
// ones are tried again after a growing time, or when the owner changes.
func (t *target) refuse(o flow.Owner, reason string, now time.Time) {
	a := t.aside[o]
	if a == nil {
		a = &aside{}
		t.aside[o] = a
	}
	wait := t.e.cfg.RefusedBackoff << min(a.tries, 6)
	a.tries++
	a.reason, a.until = reason, now.Add(wait)
	t.e.metrics.refused.Inc()
	t.e.log.Warn("switch refuses rules", "switch", t.dpid, "owner", o, "reason", reason, "retry_in", wait)
}

func (t *target) isAside(o flow.Owner, now time.Time) bool {
	a := t.aside[o]
	return a != nil && now.Before(a.until)
}

// forgive ends the setting aside of owners that were tried again and not refused;
// called when nothing is left that may be sent.
func (t *target) forgive(now time.Time) {
	for o, a := range t.aside {
		if !now.Before(a.until) {
			delete(t.aside, o)
		}
	}
}

// nextRetry is when an owner that is set aside is tried again; zero: none is.
func (t *target) nextRetry(now time.Time) time.Time {
	var next time.Time
	for _, a := range t.aside {
		if a.until.After(now) && (next.IsZero() || a.until.Before(next)) {
			next = a.until
		}
	}
	return next
}
