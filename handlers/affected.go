package handlers

import (
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Affected lists the owners of h whose rules c may have changed, where c is one of
// the changes that lead from the snapshot before to the snapshot after.
//
// Many changes may lie between the two, and an owner can hang on two objects that
// both changed: a port of a network that a router had as an internal one, when
// the port left the network and the router too. Seen from after, neither change
// leads to the owner any more; seen from before, both do. Whatever an owner
// depended on, or depends on now, is followed in one of the two snapshots.
func Affected(h Handler, before, after state.Snapshot, c model.Change) []flow.Owner {
	var set OwnerSet
	for _, db := range []state.Snapshot{before, after} {
		for _, o := range h.Affected(db, c) {
			set.Add(o)
		}
	}
	return set.List()
}
