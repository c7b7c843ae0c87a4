package reconcile

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// Session is a connection to a switch on which this server is MASTER.
// *openflow.Session implements it.
type Session interface {
	DPID() model.DPID
	Bundle(ctx context.Context, msgs []openflow.Message) error
	Send(ctx context.Context, m openflow.Message) error
	Flows(ctx context.Context, q openflow.FlowQuery) ([]openflow.FlowEntry, error)
	Groups(ctx context.Context) ([]openflow.GroupEntry, error)
	Close(reason string)
}

// hashSeed seeds the hash of cells; it differs per process and never leaves it.
var hashSeed = maphash.MakeSeed()

// target is one switch: what is claimed there and what it holds.
type target struct {
	e    *Engine
	dpid model.DPID
	stop context.CancelFunc

	signal chan struct{} // wakes the worker

	mu     sync.Mutex
	cells  map[uint64]*cell // by hash of the key
	groups map[uint32]*groupCell
	cookie map[uint64]*cell // by want
	held   map[uint64]*cell // by haveCookie, those with have
	claims int              // of all owners, groups included

	dirty       dirtyCells
	dirtyGroups map[*groupCell]struct{}
	byPort      map[string]map[*cell]struct{} // cells that name a port
	groupByPort map[string]map[*groupCell]struct{}
	byGroup     map[uint32]map[*cell]struct{} // cells that lead to a group
	unresolved  int                           // cells and groups that wait for a port

	ports     ports
	encoder   openflow.Encoder // of encode
	session   Session
	upSince   time.Time
	staged    bool // a plan is under way that concerns the switch
	growth    int  // changed claims of the plan since the worker was last woken for them
	skipped   bool // the worker is to be woken at its end
	synced    bool // the switch was read in this session
	lagging   bool // a wave has waited for it in vain
	blocked   string
	lastError string
	orphans   map[orphan]struct{}
	strays    []stray               // copies of own rules under other keys
	orphanGrp map[uint32]flow.Group // groups of kvnet's that nobody wants
	suspects  map[uint64]struct{}   // cookies of own rules that the switch says are gone
	recheck   bool                  // suspects need a whole audit
	aside     map[flow.Owner]*aside
	gen       uint64 // of the last request
	waiters   []waiter
	sched     []scheduled
	takeovers []*takeover // asked for and not yet answered
	freed     []deferred  // announcements that no longer wait, to be scheduled without t.mu
	installed int         // rules of kvnet's that the switch holds
	groupsIn  int
	conflicts int // claims that lose
}

// orphan is a rule of kvnet's that nobody wants.
type orphan struct {
	table  uint8
	cookie uint64
}

// stray is a copy of an own rule, made by others, under another key.
type stray struct {
	key flow.Key // with port numbers
	e   openflow.EncodedRule
}

type waiter struct {
	gen uint64
	ch  chan struct{}
}

// aside is an owner one of whose messages the switch has refused.
type aside struct {
	reason string
	tries  int
	until  time.Time
}

// scheduled is a gratuitous ARP to send at a time.
type scheduled struct {
	at time.Time
	c  *cell
}

func newTarget(e *Engine, d model.DPID) *target {
	return &target{
		e: e, dpid: d, signal: make(chan struct{}, 1),
		cells: map[uint64]*cell{}, groups: map[uint32]*groupCell{}, cookie: map[uint64]*cell{}, held: map[uint64]*cell{},
		dirtyGroups: map[*groupCell]struct{}{},
		byPort:      map[string]map[*cell]struct{}{}, groupByPort: map[string]map[*groupCell]struct{}{},
		byGroup: map[uint32]map[*cell]struct{}{},
		ports:   ports{}, orphans: map[orphan]struct{}{}, orphanGrp: map[uint32]flow.Group{},
		suspects: map[uint64]struct{}{}, aside: map[flow.Owner]*aside{},
	}
}

func (t *target) wake() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

func (t *target) cellFor(k key) *cell {
	h := maphash.Comparable(hashSeed, k)
	for c := t.cells[h]; c != nil; c = c.next {
		if c.key == k {
			return c
		}
	}
	c := &cell{t: t, key: k, next: t.cells[h]}
	t.cells[h] = c
	return c
}

// drop forgets a cell that nobody claims and the switch does not hold.
func (t *target) drop(c *cell) {
	if len(c.claims) > 0 || c.have || c.inflight {
		return
	}
	t.dirty.clear(c)
	h := maphash.Comparable(hashSeed, c.key)
	for p, x := (*cell)(nil), t.cells[h]; x != nil; p, x = x, x.next {
		if x != c {
			continue
		}
		switch {
		case p != nil:
			p.next = x.next
		case x.next != nil:
			t.cells[h] = x.next
		default:
			delete(t.cells, h)
		}
		return
	}
}

// hold says that the switch has a cell's rule with this cookie.
func (t *target) hold(c *cell, cookie uint64) {
	if c.have {
		t.unhold(c)
	} else {
		t.installed++
	}
	c.have, c.haveCookie = true, cookie
	t.held[cookie] = c
}

// absent says that the switch has no rule of a cell's. A responder that went so
// is gone as well: nobody need wait for its removal.
func (t *target) absent(c *cell) {
	if !c.have {
		return
	}
	t.installed--
	t.unhold(c)
	c.have = false
	if c.haveAnn != nil {
		t.freed = append(t.freed, t.e.announcer.went(responderOf(c.haveAnn), c)...)
		c.haveAnn = nil
	}
}

func (t *target) unhold(c *cell) {
	if t.held[c.haveCookie] == c {
		delete(t.held, c.haveCookie)
	}
}

// all calls f for each cell. f must not add or drop cells.
func (t *target) all(f func(*cell)) {
	for _, c := range t.cells {
		for ; c != nil; c = c.next {
			f(c)
		}
	}
}

// setClaim records what an owner wants at a key and returns its cell, and whether
// anything changed. It is called by the engine with t.mu held.
func (t *target) setClaim(k key, x claim) (c *cell, changed, conflict bool) {
	c = t.cellFor(k)
	i, ok := c.find(x.owner)
	switch {
	case ok && c.claims[i].equal(x):
		return c, false, false
	case ok:
		t.unindex(c)
		c.claims[i] = x
	default:
		t.claims++
		t.unindex(c)
		c.claims = append(c.claims, claim{})
		copy(c.claims[i+1:], c.claims[i:])
		c.claims[i] = x
	}
	t.index(c)
	delete(t.aside, x.owner)
	t.renew(c)
	return c, true, i > 0 && c.conflict(i) || i == 0 && len(c.claims) > 1 && c.conflict(1)
}

// dropClaim removes an owner's claim. The rule may be deleted only once released.
func (t *target) dropClaim(c *cell, o flow.Owner) {
	i, ok := c.find(o)
	if !ok {
		return
	}
	t.claims--
	t.unindex(c)
	c.claims = append(c.claims[:i], c.claims[i+1:]...)
	t.index(c)
	delete(t.aside, o)
	c.released = false
	t.renew(c)
}

// index and unindex keep what is known across cells: those that name a port, and
// the number of losing claims.
func (t *target) index(c *cell) {
	t.conflicts += c.conflicts()
	t.eachPort(c, func(name string) {
		if t.byPort[name] == nil {
			t.byPort[name] = map[*cell]struct{}{}
		}
		t.byPort[name][c] = struct{}{}
	})
	eachGroup(c, func(id uint32) {
		if t.byGroup[id] == nil {
			t.byGroup[id] = map[*cell]struct{}{}
		}
		t.byGroup[id][c] = struct{}{}
	})
}

func (t *target) unindex(c *cell) {
	t.conflicts -= c.conflicts()
	t.eachPort(c, func(name string) {
		delete(t.byPort[name], c)
		if len(t.byPort[name]) == 0 {
			delete(t.byPort, name)
		}
	})
	eachGroup(c, func(id uint32) {
		delete(t.byGroup[id], c)
		if len(t.byGroup[id]) == 0 {
			delete(t.byGroup, id)
		}
	})
}

func (t *target) eachPort(c *cell, f func(string)) {
	w := c.winner()
	if w == nil {
		return
	}
	if n := c.key.portName; n != "" {
		f(n)
	}
	for _, a := range w.actions {
		if o, ok := a.(flow.Output); ok && o.Port.Name != "" {
			f(o.Port.Name)
		}
	}
}

// eachGroup calls f for each group that the rule of a cell leads to.
func eachGroup(c *cell, f func(uint32)) {
	if w := c.winner(); w != nil {
		for _, a := range w.actions {
			if g, ok := a.(flow.ToGroup); ok {
				f(g.ID)
			}
		}
	}
}

// missingOf is the port that the rule of a cell waits for, or that a group waits
// for to which it leads: a switch refuses a rule that leads to no group.
func (t *target) missingOf(c *cell, w *claim) string {
	if _, missing := t.ports.resolve(c.key.inPort()); missing != "" {
		return missing
	}
	for _, a := range w.actions {
		if o, ok := a.(flow.Output); ok {
			if _, missing := t.ports.resolve(o.Port); missing != "" {
				return missing
			}
		}
	}
	missing := ""
	eachGroup(c, func(id uint32) {
		if g := t.groups[id]; g != nil && g.missing != "" {
			missing = g.missing
		}
	})
	return missing
}

// renew says that the rule of a cell may have changed: the cookie is computed
// again when it is needed.
func (t *target) renew(c *cell) {
	if c.want != 0 {
		if t.cookie[c.want] == c {
			delete(t.cookie, c.want)
		}
		c.want = 0
	}
	if c.missing != "" {
		c.missing = ""
		t.unresolved--
	}
	if len(c.claims) == 0 && !c.have && !c.inflight {
		t.drop(c)
		return
	}
	if w := c.winner(); w != nil {
		if c.missing = t.missingOf(c, w); c.missing != "" {
			t.unresolved++
		}
	}
	t.dirty.mark(c)
}

// encode computes the rule of a cell for this switch. It is empty if there is
// nothing to install: no claim, or a port is missing. It is valid until the next
// call.
func (t *target) encode(c *cell) (e openflow.EncodedRule, err error) {
	w := c.winner()
	if w == nil || c.missing != "" {
		return e, nil
	}
	r := c.rule(w)
	r.Match.InPort, _ = t.ports.resolve(r.Match.InPort)
	r.Actions, _ = t.ports.actions(r.Actions)
	if e, err = t.encoder.Rule(r); err != nil {
		return e, err
	}
	if c.want == 0 {
		c.want = cookieOf(e)
		t.cookie[c.want] = c
	}
	return e, nil
}

// resolved is the rule of a cell with port numbers.
func (t *target) resolved(c *cell, w *claim) flow.Rule {
	r := c.rule(w)
	r.Switch = t.dpid
	if m, missing := t.ports.match(r.Match); missing == "" {
		r.Match = m
	}
	if a, missing := t.ports.actions(r.Actions); missing == "" {
		r.Actions = a
	}
	return r
}

// setPort says that a port has this number, or is gone (present false). It tells
// whether that changes a rule or group.
func (t *target) setPort(name string, number uint32, present bool) (touched bool) {
	old, had := t.ports[name]
	if had == present && (!present || old == number) {
		return false
	}
	if present {
		t.ports[name] = number
	} else {
		delete(t.ports, name)
	}
	for c := range t.byPort[name] {
		// A rule whose port is gone or has another number is wrong as it is.
		c.released = true
		t.renew(c)
	}
	for g := range t.groupByPort[name] {
		g.released = true
		t.renewGroup(g)
	}
	return len(t.byPort[name])+len(t.groupByPort[name]) > 0
}

// request asks the worker to send what differs and returns a channel that is
// closed when what differs now has been answered, or can't be.
func (t *target) request() <-chan struct{} {
	ch := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen++
	if t.session == nil || t.blocked != "" {
		close(ch)
		return ch
	}
	t.waiters = append(t.waiters, waiter{t.gen, ch})
	t.wake()
	return ch
}

// answered closes the waiters of requests up to gen; called with t.mu held.
func (t *target) answered(gen uint64) {
	rest := t.waiters[:0]
	for _, w := range t.waiters {
		if w.gen <= gen {
			close(w.ch)
		} else {
			rest = append(rest, w)
		}
	}
	t.waiters = rest
	if len(rest) == 0 {
		t.lagging = false
	}
}
