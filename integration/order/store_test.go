package order

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// memory writes objects into the state as the store's watch does: one revision
// for each write, and decisions only if nobody wrote in between.
type memory struct {
	db *state.DB
	mu sync.Mutex
}

// put writes or, with a nil object, deletes.
func (m *memory) put(t *testing.T, kind model.Kind, key string, o model.Object) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(kind, key, o); err != nil {
		t.Fatal(err)
	}
}

func (m *memory) write(kind model.Kind, key string, o model.Object) error {
	snap := m.db.Snapshot()
	rev := snap.Revision() + 1
	if o != nil {
		meta := o.Stored()
		meta.Created, meta.Modified = rev, rev
		if old := snap.Get(kind, key); old != nil {
			meta.Created = old.Stored().Created
		}
	}
	return m.db.Apply(rev, []state.Event{{Kind: kind, Key: key, Object: o}})
}

// Decide implements leader.DecisionStore.
func (m *memory) Decide(_ context.Context, _ store.Term, ds []store.Decision) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	snap := m.db.Snapshot()
	for _, d := range ds {
		o := d.New
		if o == nil {
			o = d.Old
		}
		now := snap.Get(o.Kind(), o.Key())
		if (now == nil) != (d.Old == nil) || now != nil && now.Stored().Modified != d.Old.Stored().Modified {
			return 0, fmt.Errorf("decision about %s %q: %w", o.Kind(), o.Key(), store.ErrConflict)
		}
	}
	for _, d := range ds {
		o := d.New
		if o == nil {
			o = d.Old
		}
		if err := m.write(o.Kind(), o.Key(), d.New); err != nil {
			return 0, err
		}
	}
	return m.db.Snapshot().Revision(), nil
}
