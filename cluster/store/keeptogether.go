//go:build kvnet_together

package store

import (
	"context"
	"time"

	"kvnet/internal/pause"
)

// KeepAway does the opposite of what it is for: it has etcd's leader come to this
// server. So it can be measured what the death of both leaders at once costs.
func (s *Store) KeepAway(ctx context.Context, _ func(name string) bool) {
	if s.engine == nil {
		return
	}
	ctx, cancel := s.during(ctx)
	defer cancel()
	server := s.engine.etcd.Server
	for pause.For(ctx, 100*time.Millisecond) {
		if lead, own := server.Lead(), uint64(server.MemberID()); lead != 0 && lead != own {
			ctx, cancel := context.WithTimeout(ctx, 2*s.c.Election)
			_ = server.MoveLeader(ctx, lead, own) // tried again
			cancel()
		}
	}
}
