package reconcile

import (
	"slices"
	"strings"

	"kvnet/southbound/flow"
)

// claim is what one owner wants at a key.
type claim struct {
	owner    flow.Owner
	actions  []flow.Action
	gotoTo   uint8
	announce *flow.Announcement
}

func (c claim) sameEffect(o claim) bool {
	return c.gotoTo == o.gotoTo && slices.Equal(c.actions, o.actions)
}

func (c claim) equal(o claim) bool {
	return c.sameEffect(o) && c.announce.Equal(o.announce)
}

// cell is one (table, priority, match) of a switch: who claims it, and what the
// switch holds there. All claims are kept; of different ones that of the
// lexically smallest owner stands.
type cell struct {
	t      *target
	key    key     // the port of the match still by name
	next   *cell   // with the same hash
	claims []claim // ascending by owner

	want    uint64 // cookie of the rule to install; 0: not computed or not installable
	missing string // the port that the rule waits for

	// What the switch has acknowledged, if have is set.
	haveCookie uint64
	haveOwner  flow.Owner
	haveAnn    *flow.Announcement
	haveInPort uint32

	round    uint32 // in which an owner claimed it last; of the goroutine of Engine.Run
	have     bool
	inflight bool // a message about it is not answered yet
	dirty    bool // want and have may differ
	listed   bool // in the list of dirtyCells
	released bool // may be deleted (the adds of its change are in)
}

// winner is the claim that stands; nil if there is none.
func (c *cell) winner() *claim {
	if len(c.claims) == 0 {
		return nil
	}
	return &c.claims[0]
}

// conflict tells whether the claim is for something else than what stands.
func (c *cell) conflict(i int) bool { return i > 0 && !c.claims[i].sameEffect(c.claims[0]) }

// conflicts counts the claims that lose against the winner.
func (c *cell) conflicts() (n int) {
	for i := range c.claims {
		if c.conflict(i) {
			n++
		}
	}
	return n
}

func (c *cell) find(o flow.Owner) (int, bool) {
	return slices.BinarySearchFunc(c.claims, o, func(x claim, o flow.Owner) int {
		return strings.Compare(string(x.owner), string(o))
	})
}

// rule is the rule that stands, with ports by name.
func (c *cell) rule(x *claim) flow.Rule {
	return flow.Rule{Table: c.key.table, Priority: c.key.priority, Match: c.key.match(), Actions: x.actions, Goto: x.gotoTo}
}

// groupCell is one group id of a switch.
type groupCell struct {
	t      *target
	id     uint32
	claims []groupClaim // ascending by owner

	missing string
	have    bool
	got     flow.Group // what the switch holds
	owner   flow.Owner // of what it holds

	round    uint32 // as that of a cell
	inflight bool
	dirty    bool
	released bool
}

type groupClaim struct {
	owner flow.Owner
	group flow.Group
}

func (g *groupCell) winner() *groupClaim {
	if len(g.claims) == 0 {
		return nil
	}
	return &g.claims[0]
}

func (g *groupCell) find(o flow.Owner) (int, bool) {
	return slices.BinarySearchFunc(g.claims, o, func(x groupClaim, o flow.Owner) int {
		return strings.Compare(string(x.owner), string(o))
	})
}
