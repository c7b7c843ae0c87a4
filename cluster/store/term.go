package store

import (
	"context"
	"time"
)

// Term is the right to lead, held by one life of one process.
type Term struct {
	Name     string `json:"name"`     // of the server
	Instance string `json:"instance"` // random, of this life of the process
	Epoch    uint32 `json:"epoch"`
	Term     uint32 `json:"term"`
}

// Generation is the OpenFlow generation id of the term. Later terms have higher
// ones.
func (t Term) Generation() uint64 { return uint64(t.Epoch)<<32 | uint64(t.Term) }

// TakeTerm makes the caller the leader under a new term.
func (s *Store) TakeTerm(ctx context.Context, name, instance string) (Term, error) {
	return Term{}, ErrUnavailable
}

// RaiseEpoch makes sure that the epoch is at least atLeast and returns it.
func (s *Store) RaiseEpoch(ctx context.Context, atLeast uint32) (uint32, error) {
	return 0, ErrUnavailable
}

// Created is when the store was made.
func (s *Store) Created(ctx context.Context) (time.Time, error) {
	return time.Time{}, ErrUnavailable
}
