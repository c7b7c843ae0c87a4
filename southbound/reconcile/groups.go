package reconcile

import "kvnet/southbound/flow"

// setGroup records the group that an owner wants; called with t.mu held.
func (t *target) setGroup(o flow.Owner, g flow.Group) (changed, conflict bool) {
	gc := t.groups[g.ID]
	if gc == nil {
		gc = &groupCell{t: t, id: g.ID}
		t.groups[g.ID] = gc
		if got, there := t.orphanGrp[g.ID]; there {
			// Nobody wanted it when the switch was read. It is changed in place.
			delete(t.orphanGrp, g.ID)
			gc.have, gc.got = true, got
			t.groupsIn++
		}
	}
	i, ok := gc.find(o)
	switch {
	case ok && gc.claims[i].group.Equal(g):
		return false, false
	case ok:
		t.unindexGroup(gc)
		gc.claims[i].group = g
	default:
		t.claims++
		t.unindexGroup(gc)
		gc.claims = append(gc.claims, groupClaim{})
		copy(gc.claims[i+1:], gc.claims[i:])
		gc.claims[i] = groupClaim{o, g}
	}
	t.indexGroup(gc)
	delete(t.aside, o)
	t.renewGroup(gc)
	return true, len(gc.claims) > 1 && !gc.claims[0].group.Equal(gc.claims[len(gc.claims)-1].group)
}

// dropGroup removes an owner's claim on a group.
func (t *target) dropGroup(gc *groupCell, o flow.Owner) {
	i, ok := gc.find(o)
	if !ok {
		return
	}
	t.claims--
	t.unindexGroup(gc)
	gc.claims = append(gc.claims[:i], gc.claims[i+1:]...)
	t.indexGroup(gc)
	delete(t.aside, o)
	gc.released = false
	t.renewGroup(gc)
}

// conflicts counts the claims that are for something else than what stands.
func (g *groupCell) conflicts() (n int) {
	for i := range g.claims {
		if !g.claims[i].group.Equal(g.claims[0].group) {
			n++
		}
	}
	return n
}

func (t *target) indexGroup(gc *groupCell) {
	t.conflicts += gc.conflicts()
	eachGroupPort(gc, func(name string) {
		if t.groupByPort[name] == nil {
			t.groupByPort[name] = map[*groupCell]struct{}{}
		}
		t.groupByPort[name][gc] = struct{}{}
	})
}

func (t *target) unindexGroup(gc *groupCell) {
	t.conflicts -= gc.conflicts()
	eachGroupPort(gc, func(name string) {
		delete(t.groupByPort[name], gc)
		if len(t.groupByPort[name]) == 0 {
			delete(t.groupByPort, name)
		}
	})
}

func eachGroupPort(gc *groupCell, f func(string)) {
	w := gc.winner()
	if w == nil {
		return
	}
	for _, b := range w.group.Buckets {
		for _, a := range b.Actions {
			if o, ok := a.(flow.Output); ok && o.Port.Name != "" {
				f(o.Port.Name)
			}
		}
	}
}

// renewGroup says that what a group should be may have changed. The rules that
// lead to it wait for the ports that it waits for.
func (t *target) renewGroup(gc *groupCell) {
	waited := gc.missing
	defer func() {
		if gc.missing == waited {
			return
		}
		for c := range t.byGroup[gc.id] {
			c.released = true
			t.renew(c)
		}
	}()
	if gc.missing != "" {
		gc.missing = ""
		t.unresolved--
	}
	if len(gc.claims) == 0 && !gc.have && !gc.inflight {
		gc.dirty = false
		delete(t.groups, gc.id)
		delete(t.dirtyGroups, gc)
		return
	}
	if w := gc.winner(); w != nil {
		if _, gc.missing = t.ports.group(w.group); gc.missing != "" {
			t.unresolved++
		}
	}
	gc.dirty = true
	t.dirtyGroups[gc] = struct{}{}
}
