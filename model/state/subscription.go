package state

import (
	"context"

	"kvnet/model"
)

// Subscription delivers changes. Changes of one object that the reader has not
// fetched yet are merged into one (first old version, last new version), so a
// slow reader costs no more memory than there are objects.
type Subscription struct {
	d       *DB
	pending map[subKey]int // index into changes
	changes []model.Change
	signal  chan struct{}
}

type subKey struct {
	kind model.Kind
	key  string
}

// Subscribe starts a subscription. The changes follow the snapshot that it
// returns. Close ends it.
func (d *DB) Subscribe() (*Subscription, Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &Subscription{d: d, pending: map[subKey]int{}, signal: make(chan struct{}, 1)}
	d.subs[s] = struct{}{}
	return s, d.Snapshot()
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	delete(s.d.subs, s)
}

// add is called with d.mu held.
func (s *Subscription) add(changes []model.Change) {
	for _, c := range changes {
		k := subKey{c.Kind, c.Key}
		if i, ok := s.pending[k]; ok {
			s.changes[i].New = c.New
			continue
		}
		s.pending[k] = len(s.changes)
		s.changes = append(s.changes, c)
	}
	// Also without changes: a new revision or completeness is news.
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// C is signalled when Take may have something.
func (s *Subscription) C() <-chan struct{} { return s.signal }

// Take returns the changes since the last call, in the order in which their
// objects first changed, and the snapshot after them.
func (s *Subscription) Take() (Snapshot, []model.Change) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	ch := s.changes
	s.changes = nil
	clear(s.pending)
	return s.d.Snapshot(), ch
}

// Next waits for news and takes it.
func (s *Subscription) Next(ctx context.Context) (Snapshot, []model.Change, error) {
	select {
	case <-s.signal:
		snap, ch := s.Take()
		return snap, ch, nil
	case <-ctx.Done():
		return Snapshot{}, nil, context.Cause(ctx)
	}
}
