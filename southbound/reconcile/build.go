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

// op is one message of a bundle and what it means once it is in force.
type op struct {
	kind   opKind
	table  uint8 // of the rules that it deletes by their cookie
	inPort uint32
	cookie uint64
	owner  flow.Owner // who is set aside if the switch refuses it

	c   *cell
	ann *flow.Announcement

	g     *groupCell
	group *flow.Group
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

	opKinds // their number
)

// build collects what the switch must be told, in the order of one change: group
// adds and modifies, flow adds, flow deletes, group deletes, announcements. It
// clears the dirty marks of what it takes; failed puts them back. What out holds
// already stays before it. When much is to be encoded, what is there of the first
// bundle leaves meanwhile. Called with t.mu held, and not while a plan is under way.
func (t *target) build(now time.Time, out *outgoing) {
	var gone, changed []*cell
	for _, c := range t.dirty.all() {
		w := c.winner()
		switch {
		case w == nil || c.missing != "":
			switch {
			case c.have:
				gone = append(gone, c)
			case !c.inflight: // else it is deleted once it is there
				t.clean(c)
			}
		default:
			changed = append(changed, c)
		}
	}
	out.grow(len(changed) + len(gone) + len(t.dirtyGroups))

	groups := make([]*groupCell, 0, len(t.dirtyGroups))
	for g := range t.dirtyGroups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *groupCell) int { return cmp.Compare(a.id, b.id) })
	for _, g := range groups {
		t.buildGroup(g, now, out)
	}

	b := flowBuilder{t: t, now: now, out: out}
	b.portions(changed)
	for _, o := range b.cleans {
		out.add(o, openflow.DeleteFlows(o.table, o.cookie, ^uint64(0)))
	}
	if !t.holdDeletes(now) {
		b.deletes(gone)
		t.buildOrphans(out)
		for _, g := range groups {
			w := g.winner()
			if (w == nil || g.missing != "") && g.have && g.released && !t.isAside(g.owner, now) {
				g.dirty, g.inflight = false, true
				delete(t.dirtyGroups, g)
				out.add(op{kind: opGroupDelete, owner: g.owner, g: g}, openflow.DeleteGroup(g.id))
			}
		}
		for id, g := range t.orphanGrp {
			out.add(op{kind: opOrphanGroup, group: &g}, openflow.DeleteGroup(id))
		}
		clear(t.orphanGrp)
	}
	t.buildAnnouncements(&out.ops, &out.msgs)
}

// buildGroup adds what a group needs but its deletion, which comes after flows.
func (t *target) buildGroup(g *groupCell, now time.Time, out *outgoing) {
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
	o := op{kind: opGroupAdd, owner: w.owner, g: g, group: &want}
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
	out.add(o, m)
}

func (t *target) buildOrphans(out *outgoing) {
	for o := range t.orphans {
		if c := t.cookie[o.cookie]; c != nil && c.key.table == o.table && len(c.claims) > 0 {
			continue // wanted again since it was seen
		}
		out.add(op{kind: opOrphan, table: o.table, cookie: o.cookie}, openflow.DeleteFlows(o.table, o.cookie, ^uint64(0)))
	}
	clear(t.orphans)
	t.buildStrays(out)
}

// buildStrays deletes copies of own rules that others made. Where kvnet wants a
// rule of that key, the copy was in its place and is overwritten by it.
func (t *target) buildStrays(out *outgoing) {
	if len(t.strays) == 0 {
		return
	}
	wanted := t.wanted()
	for _, s := range t.strays {
		if _, ok := wanted[s.key]; !ok {
			out.add(op{kind: opStray}, openflow.DeleteStrict(s.e))
		}
	}
	t.strays = nil
}

// wanted are the cells whose rules should be on the switch, by their keys there.
func (t *target) wanted() map[flow.Key]*cell {
	out := map[flow.Key]*cell{}
	t.all(func(c *cell) {
		if c.winner() != nil && c.missing == "" {
			out[t.keyThere(c)] = c
		}
	})
	return out
}

// keyThere is the key of a cell with the number of its port.
func (t *target) keyThere(c *cell) flow.Key {
	m, _ := t.ports.match(c.key.match())
	return flow.Key{Table: c.key.table, Priority: c.key.priority, Match: m}
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
