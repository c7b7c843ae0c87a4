package state

import "context"

// revisionWaiter waits for a revision. Each has a channel of its own, so that a
// change wakes nobody who has to go on waiting.
type revisionWaiter struct {
	revision int64
	reached  chan struct{}
}

// tell wakes who has waited for the snapshot that was published. It is called with
// d.mu held.
func (d *DB) tell(revision int64) {
	if d.wake != nil {
		close(d.wake)
		d.wake = nil
	}
	for w := range d.waiting {
		if revision >= w.revision {
			close(w.reached)
			delete(d.waiting, w)
		}
	}
}

// Wait returns when ok holds for the present snapshot, or with the context's
// error.
func (d *DB) Wait(ctx context.Context, ok func(Snapshot) bool) error {
	for {
		d.mu.Lock()
		if d.wake == nil {
			d.wake = make(chan struct{})
		}
		s, wake := d.Snapshot(), d.wake
		d.mu.Unlock()
		if ok(s) {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// WaitRevision returns when the snapshot has reached the revision, or with the
// context's error.
func (d *DB) WaitRevision(ctx context.Context, revision int64) error {
	if d.Snapshot().revision >= revision {
		return nil
	}
	w := &revisionWaiter{revision, make(chan struct{})}
	d.mu.Lock()
	if d.Snapshot().revision >= revision {
		d.mu.Unlock()
		return nil
	}
	d.waiting[w] = struct{}{}
	d.mu.Unlock()
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		d.mu.Lock()
		delete(d.waiting, w)
		d.mu.Unlock()
		return context.Cause(ctx)
	}
}
