package store

import (
	"context"

	"kvnet/model"
	"kvnet/model/state"
)

// Store writes objects and keeps a state.DB up to date.
type Store struct{}

// Open starts the embedded engine, or connects to the external one, reads
// everything into db and keeps db up to date until Close.
func Open(ctx context.Context, c Config, db *state.DB) (*Store, error) {
	return nil, ErrUnavailable
}

// Close ends the watch and stops the embedded engine.
func (s *Store) Close() error { return nil }

// Create stores a new object.
func (s *Store) Create(ctx context.Context, obj model.Object) (int64, error) {
	return 0, ErrUnavailable
}

// Update replaces a stored object by what f makes of it.
func (s *Store) Update(ctx context.Context, kind model.Kind, key string, f func(old model.Object) (model.Object, error)) (int64, error) {
	return 0, ErrUnavailable
}

// Delete removes a stored object.
func (s *Store) Delete(ctx context.Context, kind model.Kind, key string) (int64, error) {
	return 0, ErrUnavailable
}

// Write is one step of Put.
type Write struct {
	Old model.Object // nil: must be absent
	New model.Object // nil: delete
}

// Put carries out several writes in one transaction.
func (s *Store) Put(ctx context.Context, changes []Write) (int64, error) {
	return 0, ErrUnavailable
}

// Decision is one step of Decide.
type Decision struct {
	Old model.Object // nil: must be absent
	New model.Object // nil: delete
}

// Decide writes what the leader has decided, if t is in force.
func (s *Store) Decide(ctx context.Context, t Term, d []Decision) (int64, error) {
	return 0, ErrUnavailable
}
