package reconcile

import (
	"cmp"
	"slices"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// flowBuilder makes the messages about rules of one build.
type flowBuilder struct {
	t      *target
	now    time.Time
	out    *outgoing
	mods   openflow.Encoder
	cleans []op // to be deleted once all adds are made
}

// inOrder compares by table, priority and cookie. Any order would do; a stable one
// makes traces readable.
func inOrder(a, b *cell) int {
	return cmp.Or(cmp.Compare(a.key.table, b.key.table), cmp.Compare(b.key.priority, a.key.priority), cmp.Compare(a.want, b.want))
}

// portions makes the messages that install the rules of cells. If they are many,
// the first leave while the rest is made.
func (b *flowBuilder) portions(cells []*cell) {
	for len(cells) > 0 {
		n := min(len(cells), portion)
		b.adds(cells[:n])
		if cells = cells[n:]; len(cells) > 0 {
			b.out.begin()
		}
	}
}

// adds makes the messages that install the rules of cells.
func (b *flowBuilder) adds(cells []*cell) {
	t := b.t
	type encoded struct {
		c *cell
		m openflow.Message
	}
	todo := make([]encoded, 0, len(cells))
	for _, c := range cells {
		w := c.winner()
		aside := t.isAside(w.owner, b.now)
		e, err := t.encode(c)
		if err != nil {
			if !aside {
				t.refuse(w.owner, "the rule can't be written to a switch: "+err.Error(), b.now)
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
		if !aside {
			todo = append(todo, encoded{c, b.mods.AddFlow(e, c.want)})
		}
	}
	slices.SortFunc(todo, func(x, y encoded) int { return inOrder(x.c, y.c) })
	for _, x := range todo {
		c, w := x.c, x.c.winner()
		o := op{kind: opFlowAdd, owner: w.owner, c: c, cookie: c.want, inPort: t.inPort(c), ann: w.announce}
		if c.have && c.haveInPort != o.inPort && t.held[c.haveCookie] == c {
			b.cleans = append(b.cleans, op{kind: opFlowClean, owner: w.owner, c: c, table: c.key.table, cookie: c.haveCookie})
		}
		t.take(c)
		b.out.add(o, x.m)
	}
}

// deletes makes the messages that delete the rules of cells that have none any
// more.
func (b *flowBuilder) deletes(gone []*cell) {
	t := b.t
	slices.SortFunc(gone, inOrder)
	for _, c := range gone {
		if t.held[c.haveCookie] != c {
			// The rule is another cell's by now: its port got the number of the one
			// that is gone.
			t.absent(c)
			t.clean(c)
			continue
		}
		if !c.released || t.isAside(c.haveOwner, b.now) {
			continue
		}
		o := op{kind: opFlowDelete, owner: c.haveOwner, c: c, table: c.key.table, cookie: c.haveCookie}
		t.take(c)
		b.out.add(o, openflow.DeleteFlows(c.key.table, c.haveCookie, ^uint64(0)))
	}
}

// inherit takes over the rule that a cell wants, if the switch has it for another
// reason: it seemed that nobody wanted it because its port was not known when the
// switch was read, or it belongs to a cell that wants it no longer because the
// number of its port has passed to another. Equal cookies mean equal rules. Were
// it not taken over, deleting it by its cookie would delete the new one too.
func (t *target) inherit(c *cell) {
	o := orphan{c.key.table, c.want}
	_, there := t.orphans[o]
	delete(t.orphans, o)
	if x := t.held[c.want]; x != nil && x.key.table == c.key.table {
		if x.winner() != nil && x.want == c.want {
			return // it is wanted there as well
		}
		t.absent(x)
		t.dirty.mark(x)
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
	p, _ := t.ports.resolve(c.key.inPort())
	return p.Number
}

func (t *target) clean(c *cell) {
	t.dirty.clear(c)
	t.drop(c)
}

func (t *target) take(c *cell) {
	t.dirty.clear(c)
	c.inflight = true
}
