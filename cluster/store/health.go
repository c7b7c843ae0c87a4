package store

import (
	"cmp"
	"context"
)

// Health is what this server knows about its part of the embedded store, without
// asking anybody.
type Health struct {
	// Quorum says that etcd has a leader, which has a majority behind it. A lost
	// quorum shows within two election timeouts.
	Quorum bool
	// Leader is the name of the member on which etcd's leader runs, Leads
	// whether that is this one.
	Leader string
	Leads  bool
	// Learner says that this member has no vote yet.
	Learner bool
	// Voters is the number of members with a vote.
	Voters int
	// Committed and Applied are the last entries of etcd's log that this member
	// knows to be in force, and that its data contains.
	Committed, Applied uint64
}

// Lag is by how many entries the data is behind what is known to be in force.
func (h Health) Lag() uint64 {
	if h.Committed < h.Applied {
		return 0
	}
	return h.Committed - h.Applied
}

// Health returns the present health. ok is false for an external store.
func (s *Store) Health() (h Health, ok bool) {
	if s.engine == nil {
		return Health{}, false
	}
	server := s.engine.etcd.Server
	lead := server.Lead()
	h = Health{
		Quorum: lead != 0 && s.life.Err() == nil, Leads: lead == uint64(server.MemberID()), Learner: server.IsLearner(),
		Applied: server.AppliedIndex(), Committed: server.CommittedIndex(),
	}
	for _, m := range server.Cluster().Members() {
		if !m.IsLearner {
			h.Voters++
		}
		if uint64(m.ID) == lead {
			h.Leader = memberName(m.Name)
		}
	}
	return h, true
}

// Parted tells whether this server is one of several members and has not been in
// touch with a majority since Open.
func (s *Store) Parted() bool {
	return s.engine != nil && s.engine.alone() && s.life.Err() == nil
}

// Linearizable returns a revision that contains every write that was
// acknowledged, by whichever server, before the call. An answer made from a
// snapshot that has reached it (state.DB.WaitRevision) is as good as one from
// the store itself.
func (s *Store) Linearizable(ctx context.Context) (int64, error) {
	return s.op(ctx, OpRead, "ask which writes are in force", s.revision)
}

func compareMembers(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}
