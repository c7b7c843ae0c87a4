package main

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	lagInterval = 5 * time.Second
	lagTimeout  = 2 * time.Second
)

// lag is how far this server's snapshot is behind the store.
type lag struct {
	stored atomic.Int64 // the store's revision when it was last asked
	delay  atomic.Int64 // nanoseconds that the snapshot took to reach it
}

// revisions is by how many revisions a snapshot is behind what is known of the
// store.
func (l *lag) revisions(snapshot int64) int64 { return max(0, l.stored.Load()-snapshot) }

// watchLag asks the store for its revision now and then, and waits a moment until
// the snapshot has reached it.
func (s *server) watchLag(ctx context.Context) error {
	tick := time.NewTicker(lagInterval)
	defer tick.Stop()
	for {
		s.measureLag(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *server) measureLag(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	revision, err := s.store.Revision(ctx)
	if err != nil {
		return // the store's own metrics count that
	}
	asked := time.Now()
	s.lag.stored.Store(revision)
	// If the wait ends before, its time is the least that the lag can be.
	_ = s.db.WaitRevision(ctx, revision)
	s.lag.delay.Store(int64(time.Since(asked)))
}
