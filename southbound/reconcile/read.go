package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

var (
	allFlows = openflow.FlowQuery{Table: 0xff}
	ownFlows = openflow.FlowQuery{Table: 0xff, Cookie: flow.CookieMark, Mask: flow.CookieMask}
)

// sync reads everything that a switch holds when its session begins, so that only
// the difference is sent.
func (t *target) sync(ctx context.Context, s Session) error {
	flows, groups, err := t.read(ctx, s)
	if err != nil {
		return err
	}
	now := time.Now()
	t.mu.Lock()
	if t.session != s {
		t.mu.Unlock()
		return nil
	}
	r := t.begin(flows, groups, now)
	t.mu.Unlock()
	t.announceYoung(r, now)
	return nil
}

// read reads all rules and groups of a switch, those of others too.
func (t *target) read(ctx context.Context, s Session) ([]openflow.FlowEntry, []openflow.GroupEntry, error) {
	flows, err := readFlows(ctx, s, allFlows)
	if err != nil {
		return nil, nil, fmt.Errorf("read the rules of switch %s: %w", t.dpid, err)
	}
	groups, err := readGroups(ctx, s)
	if err != nil {
		return nil, nil, fmt.Errorf("read the groups of switch %s: %w", t.dpid, err)
	}
	return flows, groups, nil
}

// begin starts anew from what was read; called with t.mu held and no message in
// flight.
func (t *target) begin(flows []openflow.FlowEntry, groups []openflow.GroupEntry, now time.Time) readResult {
	t.checkOriginal(flows)
	t.loadPorts()
	clear(t.aside)
	clear(t.orphans)
	clear(t.orphanGrp)
	for _, g := range t.groups {
		g.inflight, g.released = false, true
	}
	var cells []*cell
	t.all(func(c *cell) {
		// What was known of the rules is compared with what was read, so that a
		// rule which nobody claims any more keeps its owner: if that is refused
		// again, the rule stays.
		c.inflight, c.released = false, true
		cells = append(cells, c)
	})
	for _, c := range cells {
		t.renew(c)
		if _, err := t.encode(c); err != nil {
			t.refuse(c.winner().owner, "the rule can't be written to a switch: "+err.Error(), now)
		}
	}
	for _, g := range t.groups {
		t.renewGroup(g)
	}
	r := t.takeIn(flows, groups, true)
	if t.blocked == "" {
		t.warnForeign(flows)
	}
	clear(t.suspects)
	t.synced, t.recheck = true, false
	t.e.log.Debug("switch read", "switch", t.dpid, "rules", len(flows), "groups", len(groups), "to_repair", r.repairs)
	return r
}

// announceYoung announces again what was announced shortly before the switch was
// read.
func (t *target) announceYoung(r readResult, now time.Time) {
	for _, y := range r.responders {
		wait := t.e.announcer.came(y.key, t, y.c, false)
		if y.young && !wait {
			t.schedule(y.c, now)
		}
	}
}

// loadPorts takes the switch's ports from the state; called with t.mu held.
func (t *target) loadPorts() {
	now := ports{}
	for p := range t.e.db.Snapshot().SwitchPorts(t.dpid) {
		now[p.Name] = p.Number
	}
	for name, number := range t.ports {
		if _, there := now[name]; !there {
			t.setPort(name, number, false)
		}
	}
	for name, number := range now {
		t.setPort(name, number, true)
	}
}

// audit compares what the switch holds of kvnet's with what it should: cookies
// and groups, and with full also what the rules do.
func (t *target) audit(ctx context.Context, s Session, full bool) error {
	t.mu.Lock()
	blocked := t.blocked != ""
	t.mu.Unlock()
	if blocked {
		// Somebody may have taken the original's rules away.
		return t.sync(ctx, s)
	}
	flows, err := readFlows(ctx, s, ownFlows)
	if err != nil {
		return fmt.Errorf("audit the rules of switch %s: %w", t.dpid, err)
	}
	groups, err := readGroups(ctx, s)
	if err != nil {
		return fmt.Errorf("audit the groups of switch %s: %w", t.dpid, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != s {
		return nil
	}
	r := t.takeIn(flows, groups, full)
	clear(t.suspects)
	t.recheck = false
	if r.repairs > 0 {
		t.e.metrics.repairs.Add(float64(r.repairs))
		t.e.log.Warn("audit found a switch changed by others", "switch", t.dpid, "differences", r.repairs)
	}
	return nil
}

// heal looks after own rules that the switch reported as removed.
func (t *target) heal(ctx context.Context, s Session) error {
	t.mu.Lock()
	var ask []*cell
	for k := range t.suspects {
		if c := t.held[k]; c != nil {
			ask = append(ask, c)
		}
	}
	many := t.recheck || len(ask) > 64
	if !many {
		clear(t.suspects)
	}
	t.mu.Unlock()
	if many {
		return t.audit(ctx, s, false)
	}
	for _, c := range ask {
		// The report may be about an earlier installation of the same rule.
		t.mu.Lock()
		q := openflow.FlowQuery{Table: c.key.table, Cookie: c.haveCookie, Mask: ^uint64(0)}
		t.mu.Unlock()
		found, err := readFlows(ctx, s, q)
		if err != nil {
			return fmt.Errorf("look for a removed rule on switch %s: %w", t.dpid, err)
		}
		t.mu.Lock()
		if len(found) == 0 && t.session == s && c.have && c.haveCookie == q.Cookie {
			t.absent(c)
			t.dirty.mark(c)
			t.e.metrics.repairs.Inc()
			t.e.log.Warn("rule was removed by others and is put back", "switch", t.dpid, "owner", c.haveOwner)
		}
		t.mu.Unlock()
	}
	return nil
}

type readResult struct {
	repairs    int
	responders []readResponder
}

type readResponder struct {
	key   responderKey
	c     *cell
	young bool
}

// takeIn compares what was read with what should be there; called with t.mu held
// and no message in flight.
func (t *target) takeIn(flows []openflow.FlowEntry, groups []openflow.GroupEntry, full bool) (r readResult) {
	seen := make(map[*cell]bool, len(t.cookie))
	t.strays = nil
	for i := range flows {
		f := &flows[i]
		if !own(f.Cookie) {
			continue
		}
		c := t.cookie[f.Cookie]
		if c == nil {
			// A change that is still to be sent may have taken the cookie from
			// the cell whose rule this is.
			if h := t.held[f.Cookie]; h != nil {
				seen[h] = true
			} else {
				t.orphans[orphan{f.Table, f.Cookie}] = struct{}{}
				r.repairs++
			}
			continue
		}
		if f.DecodeErr != nil {
			continue // counted below as absent: adding it again puts it right
		}
		if !t.sameKey(c, f) {
			// A copy of one of our rules under another key: deleting by cookie
			// would hit the right one as well.
			t.strays = append(t.strays, stray{f.Rule.Key(), openflow.EncodedRule{Table: f.Table, Priority: f.Priority, Match: f.MatchBytes}})
			r.repairs++
			continue
		}
		if full && !t.sameEffect(c, f) {
			continue // likewise
		}
		if seen[c] && c.haveCookie != f.Cookie {
			// Its rule under the number that its port had before is there too.
			t.orphans[orphan{f.Table, c.haveCookie}] = struct{}{}
			r.repairs++
		}
		seen[c] = true
		w := c.winner()
		t.hold(c, f.Cookie)
		c.haveInPort = t.inPort(c)
		if w != nil {
			c.haveOwner = w.owner
			t.respond(c, w.announce)
			if w.announce != nil {
				r.responders = append(r.responders, readResponder{responderOf(w.announce), c, f.Duration < young})
			}
		}
	}
	t.all(func(c *cell) {
		switch {
		case c.have && !seen[c]:
			r.repairs++
			t.absent(c)
			t.dirty.mark(c)
		case c.have && c.dirty && c.want == c.haveCookie && c.missing == "" && len(c.claims) > 0:
			t.dirty.clear(c)
		}
	})
	r.repairs += t.takeInGroups(groups)
	return r
}

func (t *target) takeInGroups(groups []openflow.GroupEntry) (repairs int) {
	seen := make(map[uint32]bool, len(groups))
	for _, ge := range groups {
		id := ge.Group.ID
		if !ownGroup(id) {
			continue
		}
		got := ge.Group
		got.Switch = t.dpid
		if ge.DecodeErr != nil {
			got.Buckets = nil
		}
		gc := t.groups[id]
		if gc == nil {
			t.orphanGrp[id] = got
			repairs++
			continue
		}
		seen[id] = true
		if !gc.have {
			t.groupsIn++
		}
		changed := gc.have && (ge.DecodeErr != nil || !gc.got.Equal(got))
		gc.have, gc.got = true, got
		if w := gc.winner(); w != nil {
			gc.owner = w.owner
		}
		if changed {
			repairs++
		}
		gc.dirty = true
		t.dirtyGroups[gc] = struct{}{}
	}
	for id, gc := range t.groups {
		if gc.have && !seen[id] {
			gc.have = false
			t.groupsIn--
			gc.dirty = true
			t.dirtyGroups[gc] = struct{}{}
			repairs++
		}
	}
	return repairs
}

// sameKey tells whether a rule that was read has the key of the cell.
func (t *target) sameKey(c *cell, f *openflow.FlowEntry) bool {
	if f.Table != c.key.table || f.Priority != c.key.priority {
		return false
	}
	m, missing := t.ports.match(c.key.match())
	return missing == "" && m == f.Rule.Match
}

// sameEffect tells whether a rule that was read does what the cell wants.
func (t *target) sameEffect(c *cell, f *openflow.FlowEntry) bool {
	w := c.winner()
	if w == nil {
		return true
	}
	a, missing := t.ports.actions(w.actions)
	return missing == "" && flow.Rule{Actions: a, Goto: w.gotoTo}.SameEffect(f.Rule)
}

// checkOriginal blocks a switch that still holds rules of the original: nothing
// is written there before they are taken over.
func (t *target) checkOriginal(flows []openflow.FlowEntry) {
	n, apps := 0, map[uint64]bool{}
	for i := range flows {
		if c := flows[i].Cookie; fromOriginal(c) {
			n++
			apps[c>>48] = true
		}
	}
	was := t.blocked
	t.blocked = ""
	if n > 0 {
		var ids []string
		for _, id := range slices.Sorted(maps.Keys(apps)) {
			ids = append(ids, fmt.Sprintf("0x%04x", id))
		}
		t.blocked = fmt.Sprintf("the switch holds %d rules of ONOS (cookies with the application id %s); nothing is written before they are adopted (kvnet adopt)", n, strings.Join(ids, ", "))
	}
	if t.blocked != "" && was == "" {
		t.e.log.Warn("switch is left alone", "switch", t.dpid, "reason", t.blocked)
	}
}

// warnForeign logs rules of others that kvnet's are about to replace.
func (t *target) warnForeign(flows []openflow.FlowEntry) {
	keys := map[flow.Key]*cell{}
	for _, c := range t.dirty.all() {
		if c.winner() == nil || c.missing != "" {
			continue
		}
		keys[t.keyThere(c)] = c
	}
	for i := range flows {
		f := &flows[i]
		if own(f.Cookie) || f.DecodeErr != nil {
			continue
		}
		if c := keys[f.Rule.Key()]; c != nil {
			t.e.log.Warn("rule of somebody else is replaced", "switch", t.dpid, "owner", c.winner().owner, "rule", f.Rule.String())
		}
	}
}
