package handlers

import (
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Handler computes the rules of one kind of owner. Its methods have no side
// effects and depend on nothing but their arguments.
type Handler interface {
	// Name is the first part of the names of the handler's owners.
	Name() string
	// Affected lists the owners whose rules c may have changed. c is a change
	// of any wanted, decided or observed object. Changes come in batches: it is
	// called with the state before and with the state after the whole batch, and
	// must find in db the owners that are related to either version in c.
	Affected(db state.Snapshot, c model.Change) []flow.Owner
	// Rules returns everything that o must have on the switches now, and what
	// it is still waiting for. An owner that exists no longer has nothing.
	Rules(db state.Snapshot, o flow.Owner) (flow.Set, []Waiting)
	// Owners lists all owners that exist now; a full recompute starts from it.
	Owners(db state.Snapshot) []flow.Owner
}

// Waiting names something that an owner still lacks, in words, for example
// "network ext-net".
type Waiting string
