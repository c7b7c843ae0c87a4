package gossip

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// view is this server's table of members. Memberlist's callbacks write into it,
// so nothing here waits or calls back.
type view struct {
	self string

	mu      sync.Mutex
	entries map[string]*entry
	changed chan struct{} // closed at the next change
}

// maxKnown bounds the members that are remembered. Those that failed or left
// earliest are forgotten first.
const maxKnown = 1024

func newView(self string) *view {
	return &view{self: self, entries: map[string]*entry{}, changed: make(chan struct{})}
}

// update runs f on the entry of a name, makes one if there is none and create is
// set, and tells those that wait if something changed that others can see.
func (v *view) update(name string, create bool, f func(e *entry)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.entries[name]
	if e == nil {
		if !create {
			return
		}
		e = &entry{Member: Member{Name: name}}
		v.entries[name] = e
		v.trim()
	}
	before := e.Member
	f(e)
	if s := e.state(); s != e.State {
		e.State, e.Since = s, time.Now()
	}
	if e.Member != before {
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// trim forgets the member that has been gone for longest if there are too many.
func (v *view) trim() {
	if len(v.entries) <= maxKnown {
		return
	}
	var oldest *entry
	for _, e := range v.entries {
		if gone := e.State == Failed || e.State == Left; gone && (oldest == nil || e.Since.Before(oldest.Since)) {
			oldest = e
		}
	}
	if oldest != nil {
		delete(v.entries, oldest.Name)
	}
}

// listed takes over what memberlist says of a member that it counts as alive.
// joined says that memberlist didn't count it as alive before, so that it has
// heard of it anew.
func (v *view) listed(name, address string, m Meta, joined bool) {
	v.update(name, true, func(e *entry) {
		if joined || e.Meta.Instance != m.Instance {
			e.refused = time.Time{}
		}
		// News of a life that took its leave may still be on their way.
		if e.Meta.Instance != m.Instance {
			e.left = false
		}
		e.listed, e.Address, e.Meta = true, address, m
	})
}

// unlisted takes over that memberlist counts a member as alive no longer.
func (v *view) unlisted(name string) {
	v.update(name, false, func(e *entry) { e.listed = false })
}

// leave marks a life of a member as over.
func (v *view) leave(name string, instance uint64) {
	v.update(name, false, func(e *entry) {
		if e.Meta.Instance == instance {
			e.left = true
		}
	})
}

// refuse marks a life of a member as failed because nobody listens at its
// address. It returns whether the member counted as alive.
func (v *view) refuse(name string, instance uint64) (was bool) {
	v.update(name, false, func(e *entry) {
		was = e.Meta.Instance == instance && e.State == Alive
		if was {
			e.refused = time.Now()
		}
	})
	return was
}

// heard takes a mark of refuse back if the member was asked for a sign of life
// at asked, after the mark, and gave it.
func (v *view) heard(name string, asked time.Time) {
	v.update(name, false, func(e *entry) {
		if asked.After(e.refused) {
			e.refused = time.Time{}
		}
	})
}

// forget drops a member that is not alive.
func (v *view) forget(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[name]; e != nil && e.State != Alive {
		delete(v.entries, name)
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// members returns all members, sorted by name, and a channel that is closed at
// the next change.
func (v *view) members() ([]Member, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]Member, 0, len(v.entries))
	for _, e := range v.entries {
		out = append(out, e.Member)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return out, v.changed
}

func (v *view) get(name string) (Member, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[name]; e != nil {
		return e.Member, true
	}
	return Member{}, false
}

// alive returns those of members that are alive.
func alive(members []Member) []Member {
	var out []Member
	for _, m := range members {
		if m.State == Alive {
			out = append(out, m)
		}
	}
	return out
}
