package store

import (
	"context"
	"expvar"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// keepAwayEvery is how often KeepAway looks.
const keepAwayEvery = 500 * time.Millisecond

// inSync is by how many entries a member may lag to be worth leading.
const inSync = 64

// KeepAway keeps etcd's leader off this server until ctx ends. The server that
// leads kvnet calls it: when it dies, the store then goes on without an
// election, and only kvnet's own leader is to be replaced. Nothing is moved
// unless at least two other members are in sync; with fewer, the death of any
// costs the quorum anyway.
func (s *Store) KeepAway(ctx context.Context) {
	if s.engine == nil {
		return
	}
	ctx, cancel := s.during(ctx)
	defer cancel()
	for wait := keepAwayEvery; sleep(ctx, wait); {
		_, err := s.MoveLeader(ctx)
		wait = keepAwayEvery
		if err != nil && ctx.Err() == nil {
			// While a transfer is tried, writes wait: not again too soon.
			wait = 20 * keepAwayEvery
			s.log.Warn("could not move the store's leader to another member; trying again", "in", wait, "err", err)
		}
	}
}

// MoveLeader moves etcd's leader from this server to the member that lags least.
// moved is false if it isn't here, or if fewer than two others are in sync.
func (s *Store) MoveLeader(ctx context.Context) (moved bool, err error) {
	if s.engine == nil {
		return false, ErrNotEmbedded
	}
	server := s.engine.etcd.Server
	if server.Lead() != uint64(server.MemberID()) {
		return false, nil
	}
	to, ok := successor(raftStatus(), uint64(server.MemberID()))
	if !ok {
		return false, nil
	}
	_, err = s.op(ctx, OpMember, fmt.Sprintf("move etcd's leader to member %x", to), func(ctx context.Context) (int64, error) {
		// raft gives up after an election timeout.
		ctx, cancel := context.WithTimeout(ctx, 2*s.c.Election)
		defer cancel()
		_, err := s.client.MoveLeader(ctx, to)
		return 0, classify(err)
	})
	return err == nil, err
}

// raftStatus is the state of raft in this process. etcd shows it nowhere else.
// With several members in one process it is that of the one that started last.
func raftStatus() raft.Status {
	if v, ok := expvar.Get("raft.status").(expvar.Func); ok {
		if st, ok := v.Value().(raft.Status); ok {
			return st
		}
	}
	return raft.Status{}
}

// successor picks the voter that lags least, if at least two are in sync.
func successor(st raft.Status, self uint64) (to uint64, ok bool) {
	if st.ID != self || st.RaftState != raft.StateLeader {
		return 0, false
	}
	var best uint64
	n := 0
	last := st.Progress[self].Match
	for id, p := range st.Progress {
		if id == self || p.IsLearner || !p.RecentActive || p.State != tracker.StateReplicate || p.Match+inSync < last {
			continue
		}
		n++
		if p.Match > best || p.Match == best && id < to {
			best, to = p.Match, id
		}
	}
	return to, n >= 2
}
