package reconcile

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// repeats are when an announcement is sent again after the first one.
var repeats = []time.Duration{time.Second, 3 * time.Second}

// roamingRepeats are added for a MAC that moves with the responder. Open vSwitch as
// a switch on the way counts packets, and so learns from them, up to 500 ms late.
var roamingRepeats = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond}

// young is the age of a responder below which a leader that takes over repeats
// its announcements: the former leader may have died between them.
const young = 10 * time.Second

// responderKey names the ARP responder of an address, wherever it is.
type responderKey struct {
	address netip.Addr
	scope   string
}

func responderOf(a *flow.Announcement) responderKey { return responderKey{a.Address, a.Scope} }

type responder struct {
	key responderKey
	c   *cell
}

// announcer knows on which switches each responder is, so that an address is not
// announced from its new switch before the old one has ceased to answer for it.
type announcer struct {
	mu      sync.Mutex
	on      map[responderKey]map[*cell]model.DPID // the rules that are its responder, and where
	waiting map[responderKey][]deferred
}

// deferred is an announcement that waits for the responder to leave elsewhere.
type deferred struct {
	t *target
	c *cell
}

func newAnnouncer() *announcer {
	return &announcer{on: map[responderKey]map[*cell]model.DPID{}, waiting: map[responderKey][]deferred{}}
}

// elsewhere tells whether the responder is on another switch than d.
func (a *announcer) elsewhere(k responderKey, d model.DPID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.on[k] {
		if x != d {
			return true
		}
	}
	return false
}

// came records a responder on t. It returns true if the responder is still
// elsewhere: then the announcement is sent when it has left there.
func (a *announcer) came(k responderKey, t *target, c *cell, announce bool) (wait bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.on[k] {
		if x != t.dpid {
			wait = true
		}
	}
	if a.on[k] == nil {
		a.on[k] = map[*cell]model.DPID{}
	}
	a.on[k][c] = t.dpid
	if wait && announce {
		a.waiting[k] = append(a.waiting[k], deferred{t, c})
	}
	return wait
}

// went records that a rule is a responder no longer and returns the announcements
// that waited for that.
func (a *announcer) went(k responderKey, c *cell) []deferred {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.on[k], c)
	return a.free(k)
}

// gone forgets all responders of a switch that is known to be gone.
func (a *announcer) gone(d model.DPID) []deferred {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []deferred
	for k, on := range a.on {
		n := len(on)
		maps.DeleteFunc(on, func(_ *cell, x model.DPID) bool { return x == d })
		if len(on) < n {
			out = append(out, a.free(k)...)
		}
	}
	return out
}

// free returns what may be announced now: the responder is on one switch only.
func (a *announcer) free(k responderKey) []deferred {
	first, some := model.DPID(0), false
	for _, d := range a.on[k] {
		if some && d != first {
			return nil
		}
		first, some = d, true
	}
	out := a.waiting[k]
	delete(a.waiting, k)
	if !some {
		delete(a.on, k)
	}
	return out
}

// buildAnnouncements adds the packet-outs of responders that the bundle adds and
// that are nowhere else. Called with t.mu held.
func (t *target) buildAnnouncements(ops *[]op, msgs *[]openflow.Message) {
	for _, o := range *ops {
		if o.kind != opFlowAdd || o.ann == nil {
			continue
		}
		if o.c.have && o.c.haveInPort == o.inPort && !news(o.c.haveAnn, o.ann) {
			continue // only its actions change
		}
		if t.e.announcer.elsewhere(responderOf(o.ann), t.dpid) {
			continue
		}
		for _, m := range t.announcement(o.ann) {
			*ops = append(*ops, op{kind: opAnnounce, owner: o.owner, c: o.c})
			*msgs = append(*msgs, m)
		}
	}
}

// news tells whether a says something else than was announced before: of another
// address, or with another MAC.
func news(before, a *flow.Announcement) bool {
	return a != nil && (before == nil || responderOf(before) != responderOf(a) || before.Frame != a.Frame)
}

// announcement are the packet-outs of a, one for each of its ports that the switch
// has.
func (t *target) announcement(a *flow.Announcement) (msgs []openflow.Message) {
	for _, port := range a.Ports {
		p, missing := t.ports.resolve(port)
		if missing != "" {
			continue
		}
		m, err := openflow.PacketOut(p, []byte(a.Frame))
		if err != nil {
			t.e.log.Error("announcement can't be encoded", "switch", t.dpid, "address", a.Address, "error", err)
			continue
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// answer settles what came and went with an answered bundle, outside t.mu.
func (t *target) answer(came, went []responder, now time.Time) {
	var free []deferred
	for _, r := range went {
		free = append(free, t.e.announcer.went(r.key, r.c)...)
	}
	for _, r := range came {
		if !t.e.announcer.came(r.key, t, r.c, true) {
			t.schedule(r.c, now)
		}
	}
	announceDeferred(free, now)
}

// announceDeferred sends announcements whose responder has left the old switch.
func announceDeferred(free []deferred, now time.Time) {
	for _, d := range free {
		d.t.schedule(d.c, now, 0)
	}
}

// scheduleFreed plans the announcements on other switches that waited for what
// this one has lost.
func (t *target) scheduleFreed(now time.Time) {
	t.mu.Lock()
	free := t.freed
	t.freed = nil
	t.mu.Unlock()
	announceDeferred(free, now)
}

// schedule plans the repeated announcements of a cell's responder, and those at
// further times.
func (t *target) schedule(c *cell, now time.Time, further ...time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	after := slices.Concat(further, repeats)
	if w := c.winner(); w != nil && w.announce != nil && w.announce.Roams {
		after = append(after, roamingRepeats...)
	}
	// The responder came anew: what was planned for it before is void.
	rest := t.sched[:0]
	for _, s := range t.sched {
		if s.c != c {
			rest = append(rest, s)
		}
	}
	t.sched = rest
	for _, d := range after {
		t.sched = append(t.sched, scheduled{now.Add(d), c})
	}
	t.wake()
}

// dueAnnouncements takes the messages that are due; called with t.mu held.
func (t *target) dueAnnouncements(now time.Time) []openflow.Message {
	var msgs []openflow.Message
	rest := t.sched[:0]
	for _, s := range t.sched {
		if s.at.After(now) {
			rest = append(rest, s)
			continue
		}
		// Only what is still answered for here is announced.
		w := s.c.winner()
		if t.blocked != "" || !s.c.have || w == nil || w.announce == nil {
			continue
		}
		msgs = append(msgs, t.announcement(w.announce)...)
	}
	t.sched = rest
	return msgs
}
