package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is the right to lead, held by one life of one process.
type Term struct {
	Name     string `json:"name"`     // of the server
	Instance string `json:"instance"` // random, of this life of the process
	Epoch    uint32 `json:"epoch"`
	Term     uint32 `json:"term"`
}

// Generation is the OpenFlow generation id of the term. Later terms have higher
// ones.
func (t Term) Generation() uint64 { return uint64(t.Epoch)<<32 | uint64(t.Term) }

// TakeTerm makes the caller the leader, under a term that is later than all
// others. Whoever led before does so no longer, also if it was the caller. The
// error is ErrConflict if somebody else took a term at the same time.
func (s *Store) TakeTerm(ctx context.Context, name, instance string) (Term, error) {
	return s.takeTerm(ctx, name, instance, nil)
}

// TakeTermAfter is TakeTerm for one of several candidates: it takes over from
// the leader that the caller has seen, and from nobody else. If another term is
// in force by now the error is ErrConflict, unless it is the caller's own from an
// attempt whose answer was lost.
func (s *Store) TakeTermAfter(ctx context.Context, name, instance string, seen Term) (Term, error) {
	return s.takeTerm(ctx, name, instance, &seen)
}

func (s *Store) takeTerm(ctx context.Context, name, instance string, after *Term) (t Term, err error) {
	doing := fmt.Sprintf("take a term for %q", name)
	take := func(ctx context.Context) (int64, error) {
		resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(leaderKey), clientv3.OpGet(metaKey)).Commit()
		if err != nil {
			return 0, classify(err)
		}
		last, seen, err := termOf(resp.Responses[0].GetResponseRange().GetKvs())
		if err != nil {
			return 0, err
		}
		if after != nil && last != *after && last.Instance != instance {
			return 0, fmt.Errorf("%w: %q leads under term %d", ErrConflict, last.Name, last.Term)
		}
		kvs := resp.Responses[1].GetResponseRange().GetKvs()
		if len(kvs) == 0 {
			return 0, errNoMeta
		}
		m, err := decodeMeta(kvs[0])
		if err != nil {
			return 0, err
		}
		t = nextTerm(last, m.Epoch)
		t.Name, t.Instance = name, instance
		value, err := encodeValue(t)
		if err != nil {
			return 0, err
		}
		p := s.newPlan()
		conflict := func(*mvccpb.KeyValue) error { return ErrConflict }
		p.requireRevision(leaderKey, seen, conflict)
		p.requireRevision(metaKey, kvs[0].ModRevision, conflict)
		p.put(leaderKey, value)
		return s.commit(ctx, p, leaderWrite)
	}
	_, err = s.op(ctx, OpTerm, doing, func(ctx context.Context) (int64, error) {
		rev, err := take(ctx)
		if !errors.Is(err, errNoMeta) {
			return rev, err
		}
		// The store is new. Asking for that first would cost each take-over a read.
		if err := s.makeMeta(ctx, time.Now()); err != nil {
			return 0, err
		}
		return take(ctx)
	})
	if err != nil {
		return Term{}, err
	}
	return t, nil
}

// nextTerm is the term after last, with an epoch of at least epoch.
func nextTerm(last Term, epoch uint32) Term {
	next := Term{Epoch: max(epoch, last.Epoch), Term: last.Term + 1}
	if last.Term == math.MaxUint32 {
		next.Epoch, next.Term = max(epoch, last.Epoch+1), 1
	}
	return next
}

// termOf reads the leader's key. Without it the term is zero, and so is the
// revision.
func termOf(kvs []*mvccpb.KeyValue) (t Term, revision int64, err error) {
	if len(kvs) == 0 {
		return Term{}, 0, nil
	}
	if err := decodeValue(kvs[0].Value, &t); err != nil {
		return Term{}, 0, fmt.Errorf("read the value of key %q: %w", leaderKey, err)
	}
	return t, kvs[0].ModRevision, nil
}

// CurrentTerm asks the store, not the local copy, which term is in force. It is
// zero if nobody has led yet.
func (s *Store) CurrentTerm(ctx context.Context) (t Term, err error) {
	_, err = s.op(ctx, OpRead, "read the term", func(ctx context.Context) (int64, error) {
		resp, err := s.client.Get(ctx, leaderKey)
		if err != nil {
			return 0, classify(err)
		}
		t, _, err = termOf(resp.Kvs)
		return resp.Header.Revision, err
	})
	return t, err
}

// Leader returns the term that the watch has last seen, zero if none, and a
// channel that is closed when it has seen another one.
func (s *Store) Leader() (Term, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader, s.leaderChanged
}

func (s *Store) setLeader(t Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t == s.leader {
		return
	}
	s.leader = t
	close(s.leaderChanged)
	s.leaderChanged = make(chan struct{})
}

func isConflict(err error) bool { return errors.Is(err, ErrConflict) }
