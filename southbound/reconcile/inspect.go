package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// RuleState says how far a rule has come.
type RuleState string

// The states of a rule.
const (
	StateInstalled RuleState = "installed" // the switch has acknowledged it
	StatePending   RuleState = "pending"   // not yet: no connection, a port is missing, or under way
	StateRefused   RuleState = "refused"   // the switch refuses something of its owner
	StateConflict  RuleState = "conflict"  // another owner's rule stands in its place
)

// RuleView is a rule or group as people see it.
type RuleView struct {
	Switch model.DPID
	Owner  flow.Owner
	Rule   string // ovs-ofctl text
	State  RuleState
	Reason string
}

// WaitingView is something that an owner still lacks.
type WaitingView struct {
	Owner flow.Owner
	For   string
}

// SwitchView is what the engine knows of a switch.
type SwitchView struct {
	DPID      model.DPID
	Rules     int // that the switch holds of kvnet's
	Groups    int
	Blocked   string
	LastError string
}

// Filter narrows a view. Empty fields match all. An owner matches itself and what
// is below it ("snat/r1" matches "snat/r1/port/…").
type Filter struct {
	Switch model.DPID
	Owner  flow.Owner
}

func (f Filter) owner(o flow.Owner) bool {
	if f.Owner == "" || o == f.Owner {
		return true
	}
	return strings.HasPrefix(string(o), strings.TrimSuffix(string(f.Owner), "/")+"/")
}

// Rules lists all rules and groups that are wanted, with their states.
func (e *Engine) Rules(f Filter) []RuleView {
	var out []RuleView
	for _, t := range e.sorted() {
		if f.Switch != 0 && f.Switch != t.dpid {
			continue
		}
		t.mu.Lock()
		t.view(f, &out)
		t.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b RuleView) int {
		if a.Switch != b.Switch {
			if a.Switch < b.Switch {
				return -1
			}
			return 1
		}
		if c := strings.Compare(string(a.Owner), string(b.Owner)); c != 0 {
			return c
		}
		return strings.Compare(a.Rule, b.Rule)
	})
	return out
}

func (t *target) view(f Filter, out *[]RuleView) {
	t.all(func(c *cell) {
		for i := range c.claims {
			w := &c.claims[i]
			if !f.owner(w.owner) {
				continue
			}
			v := RuleView{Switch: t.dpid, Owner: w.owner, Rule: t.resolved(c, w).String()}
			v.State, v.Reason = t.ruleState(c, i)
			*out = append(*out, v)
		}
	})
	for _, g := range t.groups {
		for i := range g.claims {
			w := &g.claims[i]
			if !f.owner(w.owner) {
				continue
			}
			shown := w.group
			if r, missing := t.ports.group(w.group); missing == "" {
				shown = r
			}
			v := RuleView{Switch: t.dpid, Owner: w.owner, Rule: shown.String(), State: StatePending}
			switch a := t.aside[w.owner]; {
			case i > 0 && !w.group.Equal(g.claims[0].group):
				v.State, v.Reason = StateConflict, fmt.Sprintf("the group of %s stands", g.claims[0].owner)
			case g.missing != "":
				v.Reason = "the switch has no port " + g.missing
			case g.have && !g.dirty && g.got.Equal(shown) && t.synced:
				v.State = StateInstalled
			case a != nil:
				v.State, v.Reason = StateRefused, a.reason
			default:
				v.Reason = t.pendingReason()
			}
			*out = append(*out, v)
		}
	}
}

func (t *target) ruleState(c *cell, i int) (RuleState, string) {
	switch a := t.aside[c.claims[i].owner]; {
	case c.conflict(i):
		return StateConflict, fmt.Sprintf("the rule of %s stands", c.claims[0].owner)
	case a != nil && (!c.have || c.want != c.haveCookie):
		return StateRefused, a.reason
	case c.missing != "":
		return StatePending, "the switch has no port " + c.missing
	case c.have && c.want != 0 && c.haveCookie == c.want && t.synced:
		return StateInstalled, ""
	}
	return StatePending, t.pendingReason()
}

func (t *target) pendingReason() string {
	switch {
	case t.blocked != "":
		return t.blocked
	case t.session == nil:
		return "the switch is not connected"
	}
	return ""
}

// Waiting lists what owners still lack, ports of switches included.
func (e *Engine) Waiting(f Filter) []WaitingView {
	var out []WaitingView
	e.mu.Lock()
	for o, ws := range e.waiting {
		if f.owner(o) && f.Switch == 0 {
			for _, w := range ws {
				out = append(out, WaitingView{o, string(w)})
			}
		}
	}
	e.mu.Unlock()
	for _, t := range e.sorted() {
		if f.Switch != 0 && f.Switch != t.dpid {
			continue
		}
		t.mu.Lock()
		t.all(func(c *cell) {
			if w := c.winner(); w != nil && c.missing != "" && t.session != nil && f.owner(w.owner) {
				out = append(out, WaitingView{w.owner, fmt.Sprintf("port %s on %s", c.missing, t.dpid)})
			}
		})
		for _, g := range t.groups {
			if w := g.winner(); w != nil && g.missing != "" && t.session != nil && f.owner(w.owner) {
				out = append(out, WaitingView{w.owner, fmt.Sprintf("port %s on %s", g.missing, t.dpid)})
			}
		}
		t.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b WaitingView) int {
		if c := strings.Compare(string(a.Owner), string(b.Owner)); c != 0 {
			return c
		}
		return strings.Compare(a.For, b.For)
	})
	return slices.Compact(out)
}

// Switches lists what is known of each switch, by datapath id.
func (e *Engine) Switches() []SwitchView {
	var out []SwitchView
	for _, t := range e.sorted() {
		t.mu.Lock()
		out = append(out, SwitchView{DPID: t.dpid, Rules: t.installed, Groups: t.groupsIn, Blocked: t.blocked, LastError: t.lastError})
		t.mu.Unlock()
	}
	return out
}

func (e *Engine) sorted() []*target {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*target, 0, len(e.targets))
	for _, t := range e.targets {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *target) int {
		if a.dpid < b.dpid {
			return -1
		}
		return 1
	})
	return out
}
