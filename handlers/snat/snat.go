package snat

import (
	"slices"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

const name = "snat"

// Handler computes the SNAT rules. A router has one owner for the rules that all
// its VMs share, and one for each port of its internal networks.
type Handler struct{}

// New makes the handler.
func New() Handler { return Handler{} }

// Name implements handlers.Handler.
func (Handler) Name() string { return name }

func routerOwner(router string) flow.Owner { return handlers.OwnerOf(name, router) }

func portOwner(router string, p *model.Port) flow.Owner {
	return handlers.OwnerOf(name, router, "port", p.Key())
}

// Owners implements handlers.Handler.
func (Handler) Owners(db state.Snapshot) (owners []flow.Owner) {
	for r := range db.Routers() {
		owners = append(owners, routerOwner(r.Name))
		for _, id := range r.Internal {
			for p := range db.PortsByNetwork(id) {
				owners = append(owners, portOwner(r.Name, p))
			}
		}
	}
	return owners
}

// Rules implements handlers.Handler.
func (Handler) Rules(db state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	parts, ok := handlers.OwnerParts(name, o)
	if !ok {
		return flow.Set{}, nil
	}
	r := db.Router(parts[0])
	if r == nil {
		return flow.Set{}, nil
	}
	switch {
	case len(parts) == 1:
		s, waiting := settingOf(db, r)
		if s == nil {
			return flow.Set{}, waiting
		}
		return s.routerRules(db)
	case len(parts) == 3 && parts[1] == "port":
		p := db.PortByKey(parts[2])
		if p == nil || !slices.Contains(r.Internal, p.NetworkID) {
			return flow.Set{}, nil
		}
		s, waiting := settingOf(db, r)
		if s == nil {
			if len(waiting) != 0 {
				// What the router lacks is told once, by its own owner.
				waiting = []handlers.Waiting{handlers.Waitf("SNAT of router %s", r.Name)}
			}
			return flow.Set{}, waiting
		}
		return s.portRules(db, p)
	}
	return flow.Set{}, nil
}
