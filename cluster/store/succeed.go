package store

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"kvnet/internal/pause"
)

// succeedTurn is how many heartbeats a member gives the one before it.
const succeedTurn = 3

// Succeed has this server stand for etcd's leader at once, because that is on the
// member of the name dead, whose process is known to have ended; etcd would notice
// that only by an election timeout of silence. turn is how many others stand
// before it: one whose log is behind is refused by the rest. An error in who is
// dead costs a change of etcd's leader and no more.
func (s *Store) Succeed(ctx context.Context, dead string, turn int) error {
	h, ok := s.Health()
	if !ok || h.Leader != dead || h.Leads || h.Learner {
		return nil
	}
	server := s.engine.etcd.Server
	led := server.Lead()
	if !pause.For(ctx, time.Duration(turn)*succeedTurn*s.c.Heartbeat) {
		return context.Cause(ctx)
	}
	if lead := server.Lead(); lead != led && lead != raft.None {
		return nil
	}
	// What a leader sends to the member to which it hands over.
	own := uint64(server.MemberID())
	err := server.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &led, To: &own})
	if err != nil {
		return fmt.Errorf("stand for the store's leader after member %q: %w", dead, err)
	}
	return nil
}
