package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/internal/pause"
)

// writer says on whose behalf a transaction is, which decides how much space it
// must leave.
type writer int

const (
	// clientWrite stores what a client wants.
	clientWrite writer = iota
	// leaderWrite stores what keeps the cluster going: terms and decisions.
	// They may use the space that clients may not, so that a full store doesn't
	// stop the network.
	leaderWrite
)

// room refuses a transaction for which there is no space. The engine doesn't
// survive a full disk, so it must not come to that.
func (s *Store) room(p *plan, w writer) error {
	if s.engine == nil {
		return nil
	}
	need := s.c.MinFree
	if w != clientWrite || p.puts == 0 {
		need /= 2
	}
	if free, ok := s.c.tuning.free(s.c.Dir); ok && s.c.MinFree > 0 && free < need+int64(p.puts) {
		return fmt.Errorf("%w: the disk of %q has %d MiB left, %d MiB are kept for the store's log",
			ErrNoSpace, s.c.Dir, free>>20, need>>20)
	}
	if w == clientWrite && p.puts > 0 {
		if used := s.engine.used(); used+int64(p.puts) > s.c.Quota {
			s.relieve()
			return fmt.Errorf("%w: %d of %d MiB are used", ErrNoSpace, used>>20, s.c.Quota>>20)
		}
	}
	return nil
}

// used is the size of what is stored, with revisions that are not compacted yet.
func (e *embedded) used() int64 { return e.etcd.Server.Backend().SizeInUse() }

// size is the size of the file.
func (e *embedded) size() int64 { return e.etcd.Server.Backend().Size() }

// relieve asks the upkeep to make room.
func (s *Store) relieve() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// upkeep makes room when it is asked to, and looks now and then by itself.
func (s *Store) upkeep(ctx context.Context) {
	tick := time.NewTicker(s.c.tuning.upkeep)
	defer tick.Stop()
	for {
		forced := false
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
			forced = true
		case <-tick.C:
		}
		s.makeRoom(ctx, forced)
		// Refused writers kick again and again; each compaction costs the same.
		if forced && !pause.For(ctx, min(time.Second, s.c.tuning.upkeep)) {
			return
		}
	}
}

// recoverSpace makes room before the first write after a start, in case the
// store was full when it ended.
func (s *Store) recoverSpace(ctx context.Context) {
	s.makeRoom(ctx, false)
}

// makeRoom drops old revisions and gives the file's empty pages back, as far as
// that is needed, and lifts the engine's refusal to write. Failures are logged:
// the next round tries again, and writers are told ErrNoSpace meanwhile.
func (s *Store) makeRoom(ctx context.Context, forced bool) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	hard := s.c.Quota + s.c.tuning.headroom
	alarms := s.alarms()
	refuses := len(alarms) > 0
	if !refuses && !forced && s.engine.used() < s.c.Quota && s.engine.size() < hard-hard/10 {
		return
	}
	rev, err := s.revision(ctx)
	if err == nil && rev > s.compacted {
		_, err = s.client.Compact(ctx, rev, clientv3.WithCompactPhysical())
		if err == nil || errors.Is(err, rpctypes.ErrCompacted) {
			s.compacted, err = rev, nil
		}
	}
	if err != nil {
		s.log.Warn("could not drop old revisions to make room", "err", err)
		return
	}
	backend := s.engine.etcd.Server.Backend()
	backend.ForceCommit() // counts the pages that are free now
	if s.engine.size() >= hard-hard/10 && s.engine.used() < hard-hard/5 {
		free, ok := s.c.tuning.free(s.c.Dir)
		if ok && free < s.engine.used()+segment {
			s.log.Warn("the disk is too full to shrink the store's file", "free", free, "needed", s.engine.used()+segment)
			return
		}
		if err := backend.Defrag(); err != nil {
			s.log.Warn("could not shrink the store's file", "err", err)
			return
		}
	}
	if refuses && s.engine.size() < hard-hard/10 {
		for _, id := range alarms {
			_, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE})
			if err != nil {
				s.log.Warn("could not let the store write again after room was made", "err", err)
				return
			}
		}
		s.log.Info("the store has room again", "used", s.engine.used())
	}
}

// alarms lists the members that have met the engine's hard quota and for which
// this one has to care: itself, and those that are members no longer. While
// there is one, all members refuse writes.
func (s *Store) alarms() (ids []uint64) {
	server := s.engine.etcd.Server
	for _, a := range server.Alarms() {
		gone := server.Cluster().Member(types.ID(a.MemberID)) == nil
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE && (gone || a.MemberID == uint64(server.MemberID())) {
			ids = append(ids, a.MemberID)
		}
	}
	return ids
}
