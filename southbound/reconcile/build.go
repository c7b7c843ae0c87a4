package reconcile

import (
	"cmp"
	"slices"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// maxBundle is how many messages one bundle holds at most. Open vSwitch commits
// 20,000 in 0.02 s; smaller bundles bound what one refusal sends again.
const maxBundle = 10_000

// manyDirty is the number of cells above which the set of dirty ones is made anew
// once it is empty.
const manyDirty = 1024

// op is one message of a bundle and what it means once it is in force.
type op struct {
	kind  opKind
	owner flow.Owner // who is set aside if the switch refuses it

	c      *cell
	cookie uint64
	inPort uint32
	ann    *flow.Announcement

	g     *groupCell
	group flow.Group

	o  orphan
	id uint32
}

type opKind uint8

const (
	opGroupAdd opKind = iota
	opGroupModify
	opFlowAdd
	opFlowDelete // of a cell's rule
	opFlowClean  // of a rule that the cell had under another port number
	opOrphan
	opStray
	opGroupDelete
	opOrphanGroup
	opAnnounce
	opForeign // rules of the former controller
	opForeignGroup
)

// build collects what the switch must be told, in the order of one change: group
// adds and modifies, flow adds, flow deletes, group deletes, announcements. It
// clears the dirty marks of what it takes; failed puts them back. Called with
// t.mu held.
func (t *target) build(now time.Time) (ops []op, msgs []openflow.Message) {
	add := func(o op, m openflow.Message) {
		ops = append(ops, o)
		msgs = append(msgs, m)
	}
	hold, large := t.holdDeletes(now), len(t.dirty) > manyDirty
	var gone, changed []*cell
	for c := range t.dirty {
		w := c.winner()
		if w == nil || c.missing != "" {
			if c.have {
				gone = append(gone, c)
			} else {
				t.clean(c)
			}
			continue
		}
		changed = append(changed, c)
	}
	order := func(a, b *cell) int {
		// Any order would do; a stable one makes traces readable.
		return cmp.Or(cmp.Compare(a.key.Table, b.key.Table), cmp.Compare(b.key.Priority, a.key.Priority), cmp.Compare(a.want, b.want))
	}

	groups := make([]*groupCell, 0, len(t.dirtyGroups))
	for g := range t.dirtyGroups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *groupCell) int { return cmp.Compare(a.id, b.id) })
	for _, g := range groups {
		t.buildGroup(g, now, add)
	}

	type encoded struct {
		c *cell
		e openflow.EncodedRule
	}
	var adds []encoded
	for _, c := range changed {
		w, aside := c.winner(), t.isAside(c.winner().owner, now)
		e, err := t.encode(c)
		if err != nil {
			if !aside {
				t.refuse(w.owner, "the rule can't be written to a switch: "+err.Error(), now)
			}
			continue
		}
		if !c.have {
			t.inherit(c)
		}
		if c.have && c.haveCookie == c.want && c.haveInPort == t.inPort(c) {
			c.haveOwner = w.owner
			t.respond(c, w.announce)
			t.clean(c)
			continue
		}
		if aside {
			continue
		}
		adds = append(adds, encoded{c, e})
	}
	slices.SortFunc(adds, func(a, b encoded) int { return order(a.c, b.c) })
	var cleans []op
	for _, x := range adds {
		c, w := x.c, x.c.winner()
		o := op{kind: opFlowAdd, owner: w.owner, c: c, cookie: c.want, inPort: t.inPort(c), ann: w.announce}
		if c.have && c.haveInPort != o.inPort && t.held[c.haveCookie] == c {
			cleans = append(cleans, op{kind: opFlowClean, owner: w.owner, c: c, o: orphan{c.key.Table, c.haveCookie}})
		}
		t.take(c)
		add(o, openflow.AddFlow(x.e, c.want))
	}

	for _, o := range cleans {
		add(o, openflow.DeleteFlows(o.o.table, o.o.cookie, ^uint64(0)))
	}
	if !hold {
		slices.SortFunc(gone, order)
		for _, c := range gone {
			if t.held[c.haveCookie] != c {
				// The rule is another cell's by now: its port got the number
				// of the one that is gone.
				t.absent(c)
				t.clean(c)
				continue
			}
			if !c.released || t.isAside(c.haveOwner, now) {
				continue
			}
			o := op{kind: opFlowDelete, owner: c.haveOwner, c: c, cookie: c.haveCookie, o: orphan{c.key.Table, c.haveCookie}}
			t.take(c)
			add(o, openflow.DeleteFlows(c.key.Table, c.haveCookie, ^uint64(0)))
		}
		t.buildOrphans(add)
		for _, g := range groups {
			w := g.winner()
			if (w == nil || g.missing != "") && g.have && g.released && !t.isAside(g.owner, now) {
				g.dirty, g.inflight = false, true
				delete(t.dirtyGroups, g)
				add(op{kind: opGroupDelete, owner: g.owner, g: g}, openflow.DeleteGroup(g.id))
			}
		}
		for id, g := range t.orphanGrp {
			add(op{kind: opOrphanGroup, id: id, group: g}, openflow.DeleteGroup(id))
		}
		clear(t.orphanGrp)
	}
	t.buildAnnouncements(&ops, &msgs)
	if large && len(t.dirty) == 0 {
		// A map that was large stays as large when it is emptied, and every later
		// change would walk it.
		t.dirty = map[*cell]struct{}{}
	}
	return ops, msgs
}

// buildGroup adds what a group needs but its deletion, which comes after flows.
func (t *target) buildGroup(g *groupCell, now time.Time, add func(op, openflow.Message)) {
	w := g.winner()
	if w == nil || g.missing != "" {
		if !g.have {
			g.dirty = false
			delete(t.dirtyGroups, g)
			if len(g.claims) == 0 && !g.inflight {
				delete(t.groups, g.id)
			}
		}
		return
	}
	if t.isAside(w.owner, now) {
		return
	}
	want, _ := t.ports.group(w.group)
	if g.have && g.got.Equal(want) {
		g.dirty, g.owner = false, w.owner
		delete(t.dirtyGroups, g)
		return
	}
	o := op{kind: opGroupAdd, owner: w.owner, g: g, group: want}
	encode := openflow.AddGroup
	if g.have {
		// A group is never deleted and added again: its flows would go.
		o.kind, encode = opGroupModify, openflow.ModifyGroup
	}
	m, err := encode(want)
	if err != nil {
		t.refuse(w.owner, "the group can't be written to a switch: "+err.Error(), now)
		return
	}
	g.dirty, g.inflight = false, true
	delete(t.dirtyGroups, g)
	add(o, m)
}

func (t *target) buildOrphans(add func(op, openflow.Message)) {
	for o := range t.orphans {
		if c := t.cookie[o.cookie]; c != nil && c.key.Table == o.table && len(c.claims) > 0 {
			continue // wanted again since it was seen
		}
		add(op{kind: opOrphan, o: o}, openflow.DeleteFlows(o.table, o.cookie, ^uint64(0)))
	}
	clear(t.orphans)
	t.buildStrays(add)
}

// buildStrays deletes copies of own rules that others made. Where kvnet wants a
// rule of that key, the copy was in its place and is overwritten by it.
func (t *target) buildStrays(add func(op, openflow.Message)) {
	if len(t.strays) == 0 {
		return
	}
	wanted := t.wanted()
	for _, s := range t.strays {
		if _, ok := wanted[s.key]; !ok {
			add(op{kind: opStray}, openflow.DeleteStrict(s.e))
		}
	}
	t.strays = nil
}

// wanted are the cells whose rules should be on the switch, by their keys there.
func (t *target) wanted() map[flow.Key]*cell {
	out := map[flow.Key]*cell{}
	t.all(func(c *cell) {
		if c.winner() != nil && c.missing == "" {
			k := c.key
			k.Match, _ = t.ports.match(k.Match)
			out[k] = c
		}
	})
	return out
}

// inherit takes over the rule that a cell wants, if the switch has it for another
// reason: it seemed that nobody wanted it because its port was not known when the
// switch was read, or it belongs to a cell that wants it no longer because the
// number of its port has passed to another. Equal cookies mean equal rules. Were
// it not taken over, deleting it by its cookie would delete the new one too.
func (t *target) inherit(c *cell) {
	o := orphan{c.key.Table, c.want}
	_, there := t.orphans[o]
	delete(t.orphans, o)
	if x := t.held[c.want]; x != nil && x.key.Table == c.key.Table {
		if x.winner() != nil && x.want == c.want {
			return // it is wanted there as well
		}
		t.absent(x)
		t.mark(x)
		there = true
	}
	if there {
		t.hold(c, c.want)
		c.haveInPort = t.inPort(c)
	}
}

// respond records which responder the rule of a cell is that the switch has.
func (t *target) respond(c *cell, a *flow.Announcement) {
	if c.haveAnn != nil && (a == nil || responderOf(a) != responderOf(c.haveAnn)) {
		t.freed = append(t.freed, t.e.announcer.went(responderOf(c.haveAnn), c)...)
		c.haveAnn = nil
	}
	if a != nil && c.haveAnn == nil {
		t.e.announcer.came(responderOf(a), t, c, false)
	}
	c.haveAnn = a
}

// inPort is the number of the port that a cell's rule matches; 0: none.
func (t *target) inPort(c *cell) uint32 {
	p, _ := t.ports.resolve(c.key.Match.InPort)
	return p.Number
}

func (t *target) clean(c *cell) {
	c.dirty = false
	delete(t.dirty, c)
	t.drop(c)
}

func (t *target) take(c *cell) {
	c.dirty, c.inflight = false, true
	delete(t.dirty, c)
}

// holdDeletes tells whether nothing may be deleted on the switch yet: until the
// snapshot was complete, and for as long as rules there wait for a port or the
// node is still assembling, at most until the hold is over.
func (t *target) holdDeletes(now time.Time) bool {
	if !t.e.complete.Load() {
		return true
	}
	if now.Before(t.holdUntil(t.e.cfg.DeleteHold)) && t.unresolved > 0 {
		return true
	}
	return now.Before(t.upSince.Add(t.e.cfg.AssembleHold)) && t.e.assembling(t.dpid)
}

func (t *target) holdUntil(d time.Duration) time.Time {
	from := t.e.since
	if t.upSince.After(from) {
		from = t.upSince
	}
	return from.Add(d)
}
