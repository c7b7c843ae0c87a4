package handlertest

import (
	"fmt"
	"slices"
	"strings"

	"kvnet/handlers"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Follower keeps what each owner has up to date from changes alone: only owners
// that handlers.Affected names are computed again.
type Follower struct {
	// Sets is what each owner has, in text; owners without anything are absent.
	Sets map[flow.Owner]string

	handlers []handlers.Handler
	sub      *state.Subscription
	before   state.Snapshot
}

// Follow starts a Follower of an empty state.
func Follow(db *state.DB, hs ...handlers.Handler) *Follower {
	f := &Follower{Sets: map[flow.Owner]string{}, handlers: hs}
	f.sub, f.before = db.Subscribe()
	return f
}

// Close ends it.
func (f *Follower) Close() { f.sub.Close() }

// Update takes in all changes since the last call.
func (f *Follower) Update() {
	after, changes := f.sub.Take()
	for _, h := range f.handlers {
		owners := map[flow.Owner]bool{}
		for _, c := range changes {
			for _, o := range handlers.Affected(h, f.before, after, c) {
				owners[o] = true
			}
		}
		for o := range owners {
			if text := Text(h.Rules(after, o)); text != "" {
				f.Sets[o] = text
			} else {
				delete(f.Sets, o)
			}
		}
	}
	f.before = after
}

// FromScratch computes what all owners have from the snapshot alone.
func FromScratch(db state.Snapshot, hs ...handlers.Handler) map[flow.Owner]string {
	sets := map[flow.Owner]string{}
	for _, h := range hs {
		for _, o := range h.Owners(db) {
			if text := Text(h.Rules(db, o)); text != "" {
				sets[o] = text
			}
		}
	}
	return sets
}

// Text writes what an owner has, one line each in order: the switch (its datapath
// id without leading zeros) and the rule or group, its announcement, and what the
// owner waits for.
func Text(set flow.Set, waiting []handlers.Waiting) string {
	var lines []string
	for _, r := range set.Rules {
		lines = append(lines, fmt.Sprintf("%x %s", uint64(r.Switch), r))
		if a := r.Announce; a != nil {
			for _, p := range a.Ports {
				lines = append(lines, fmt.Sprintf("%x announces %s of %s on %s: %x", uint64(r.Switch), a.Address, a.Scope, p, a.Frame))
			}
		}
	}
	for _, g := range set.Groups {
		lines = append(lines, fmt.Sprintf("%x %s", uint64(g.Switch), g))
	}
	for _, x := range waiting {
		lines = append(lines, "waits for "+string(x))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
