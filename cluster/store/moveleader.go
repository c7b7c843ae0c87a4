package store

import (
	"context"
	"expvar"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// inSync is by how many entries a member may lag to be worth leading.
const inSync = 64

// MoveLeader moves etcd's leader from this server to another member, of those that
// are fit and in sync the one with the last name: the first is the next to lead kvnet, and
// then both would be in one place again. moved is false if it isn't here, or if fewer than two others are in sync.
func (s *Store) MoveLeader(ctx context.Context, fit func(name string) bool) (moved bool, err error) {
	if s.engine == nil {
		return false, ErrNotEmbedded
	}
	server := s.engine.etcd.Server
	if server.Lead() != uint64(server.MemberID()) {
		return false, nil
	}
	name := func(id uint64) string {
		if m := server.Cluster().Member(types.ID(id)); m != nil {
			return memberName(m.Name)
		}
		return ""
	}
	to, ok := successor(raftStatus(), uint64(server.MemberID()), name, fit)
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

// successor picks the last by name of the voters that are fit and in sync, if there
// are at least two of these.
func successor(st raft.Status, self uint64, name func(id uint64) string, fit func(name string) bool) (to uint64, ok bool) {
	if st.ID != self || st.RaftState != raft.StateLeader {
		return 0, false
	}
	n := 0
	last := st.Progress[self].Match
	for id, p := range st.Progress {
		if id == self || p.IsLearner || !p.RecentActive || p.State != tracker.StateReplicate || p.Match+inSync < last || !fit(name(id)) {
			continue
		}
		n++
		if to == 0 || name(id) > name(to) {
			to = id
		}
	}
	return to, n >= 2
}
