package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
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
		if forced && !sleep(ctx, min(time.Second, s.c.tuning.upkeep)) {
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
	refuses, err := s.refusesWrites(ctx)
	if err != nil {
		s.log.Warn("could not ask the store whether it is full", "err", err)
		return
	}
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
		id := uint64(s.engine.etcd.Server.MemberID())
		_, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE})
		if err != nil {
			s.log.Warn("could not let the store write again after room was made", "err", err)
			return
		}
		s.log.Info("the store has room again", "used", s.engine.used())
	}
}

// refusesWrites tells whether the engine has met its hard quota and refuses
// writes until it is told otherwise.
func (s *Store) refusesWrites(ctx context.Context) (bool, error) {
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return false, classify(err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return true, nil
		}
	}
	return false, nil
}
