//go:build !kvnet_together

package store

import (
	"context"
	"time"

	"kvnet/internal/pause"
)

const (
	// keepAwayEvery is how often KeepAway looks. What it looks at is in this process.
	keepAwayEvery = 100 * time.Millisecond
	// keepAwayPause follows a transfer that failed: while one is tried, writes wait.
	keepAwayPause = 10 * time.Second
)

// KeepAway keeps etcd's leader off this server until ctx ends. The server that
// leads kvnet calls it: when it dies, the store then goes on without an
// election, and only kvnet's own leader is to be replaced. Nothing is moved
// unless at least two other members are in sync; with fewer, the death of any
// costs the quorum anyway. fit says which members may have it; one that is about to
// stop should not.
func (s *Store) KeepAway(ctx context.Context, fit func(name string) bool) {
	if s.engine == nil {
		return
	}
	ctx, cancel := s.during(ctx)
	defer cancel()
	for wait := keepAwayEvery; pause.For(ctx, wait); {
		_, err := s.MoveLeader(ctx, fit)
		wait = keepAwayEvery
		if err != nil && ctx.Err() == nil {
			wait = keepAwayPause
			s.log.Warn("could not move the store's leader to another member; trying again", "in", wait, "err", err)
		}
	}
}
