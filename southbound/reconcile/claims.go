package reconcile

import (
	"kvnet/handlers"
	"kvnet/southbound/flow"
)

// owned is what one owner has claimed.
type owned struct {
	cells  []*cell
	groups []*groupCell
}

// compute makes the claims of an owner equal to what its handler says. It
// reports whether anything changed.
func (e *Engine) compute(h handlers.Handler, o flow.Owner, b *batch) (changed bool) {
	set, waiting := h.Rules(e.snap, o)
	e.metrics.recomputed.Inc()
	e.mu.Lock()
	if len(waiting) > 0 {
		e.waiting[o] = waiting
	} else {
		delete(e.waiting, o)
	}
	e.mu.Unlock()

	old := e.owners[o]
	if len(set.Rules) == 0 && len(set.Groups) == 0 && old == nil {
		return false
	}
	e.round++
	next := &owned{}
	c := claimer{e: e, b: b, owner: o, changed: &changed}
	next.cells = c.rules(set.Rules)
	next.groups = c.groups(set.Groups)
	if old != nil {
		c.drop(old)
	}
	c.leave()
	if len(next.cells) == 0 && len(next.groups) == 0 {
		delete(e.owners, o)
	} else {
		e.owners[o] = next
	}
	return changed
}

// claimer changes the claims of one owner. What the owner claims in the present
// round is marked with it: what it claimed before and has no such mark goes.
type claimer struct {
	e       *Engine
	b       *batch
	owner   flow.Owner
	changed *bool
	at      *target // locked, and staged; nil: none

	conflicts []func() // to log without a lock
}

// enter locks a target. It stays locked until another is entered.
func (c *claimer) enter(t *target) {
	if t == c.at {
		return
	}
	c.unlock()
	c.b.stage(t)
	t.mu.Lock()
	c.at = t
}

func (c *claimer) unlock() {
	if c.at != nil {
		c.at.mu.Unlock()
		c.at = nil
	}
}

// leave ends the work of c.
func (c *claimer) leave() {
	c.unlock()
	for _, log := range c.conflicts {
		log()
	}
}

// change notes that the claims on the present target have changed.
func (c *claimer) change() {
	*c.changed = true
	c.b.touch(c.at)
}

func (c *claimer) rules(rules []flow.Rule) []*cell {
	if len(rules) == 0 {
		return nil
	}
	out := make([]*cell, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		if c.at == nil || c.at.dpid != r.Switch {
			c.unlock() // before Engine.mu
			c.enter(c.e.target(r.Switch))
		}
		x, changed, conflict := c.at.setClaim(packKey(r.Table, r.Priority, &r.Match), claim{c.owner, r.Actions, r.Goto, r.Announce})
		if x.round != c.e.round {
			x.round = c.e.round
			out = append(out, x)
		}
		if changed {
			c.change()
			c.at.grown()
			// The new rule may lack a port: then the old one has to go.
			c.b.cells = append(c.b.cells, x)
		}
		if conflict {
			c.conflicts = append(c.conflicts, func() {
				c.e.log.Warn("two owners want different rules", "switch", r.Switch, "owner", c.owner, "rule", r.String())
			})
		}
	}
	return out
}

func (c *claimer) groups(groups []flow.Group) (out []*groupCell) {
	for _, g := range groups {
		if c.at == nil || c.at.dpid != g.Switch {
			c.unlock()
			c.enter(c.e.target(g.Switch))
		}
		changed, conflict := c.at.setGroup(c.owner, g)
		x := c.at.groups[g.ID]
		if x.round != c.e.round {
			x.round = c.e.round
			out = append(out, x)
		}
		if changed {
			c.change()
			c.b.groups = append(c.b.groups, x)
		}
		if conflict {
			c.conflicts = append(c.conflicts, func() {
				c.e.log.Warn("two owners want different groups", "switch", g.Switch, "owner", c.owner, "group", g.ID)
			})
		}
	}
	return out
}

// drop ends the claims that the owner has no longer.
func (c *claimer) drop(old *owned) {
	for _, x := range old.cells {
		if x.round != c.e.round {
			c.enter(x.t)
			x.t.dropClaim(x, c.owner)
			c.change()
			c.b.cells = append(c.b.cells, x)
			c.b.deletes = true
		}
	}
	for _, x := range old.groups {
		if x.round != c.e.round {
			c.enter(x.t)
			x.t.dropGroup(x, c.owner)
			c.change()
			c.b.groups = append(c.b.groups, x)
			c.b.deletes = true
		}
	}
}
