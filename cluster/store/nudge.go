package store

import (
	"context"
	"time"

	"go.etcd.io/raft/v3"

	"kvnet/internal/pause"
)

// nudgeEvery is the time between two entries for those who catch up.
const nudgeEvery = time.Second

// nudge writes entries without an effect to the log while a member catches up, on
// the server with etcd's leader. A member that is far behind takes no proposals of
// its own; when the stream from the leader is lost just then, as it is when a
// snapshot has come, it was seen to wait for the next entry, which in a cluster
// without writers doesn't come.
func (s *Store) nudge(ctx context.Context) {
	for pause.For(ctx, nudgeEvery) {
		if !s.engine.leadsLaggards() {
			continue
		}
		try, cancel := context.WithTimeout(ctx, nudgeEvery)
		// A key that never exists: an entry, but neither a revision nor an event. If it
		// fails there is no leader, and the next one does the same.
		_, _ = s.client.Delete(try, nudgeKey)
		cancel()
	}
}

// leadsLaggards tells whether etcd's leader is here and another member isn't up to
// date, or has no vote yet.
func (e *embedded) leadsLaggards() bool {
	server := e.etcd.Server
	self := uint64(server.MemberID())
	if server.Lead() != self {
		return false
	}
	for _, m := range server.Cluster().Members() {
		if m.IsLearner {
			return true
		}
	}
	st := raftStatus()
	return st.ID == self && laggards(st)
}

// laggards tells whether a member that is there lags behind the leader.
func laggards(st raft.Status) bool {
	last := st.Progress[st.ID].Match
	for id, p := range st.Progress {
		if id != st.ID && p.RecentActive && p.Match+inSync < last {
			return true
		}
	}
	return false
}
