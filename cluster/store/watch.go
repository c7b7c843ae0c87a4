package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/internal/pause"
	"kvnet/model"
	"kvnet/model/state"
)

// maxBackoff bounds the pause between two attempts to get the watch back.
const maxBackoff = 5 * time.Second

// errRewound says that the store has gone back to an earlier revision.
var errRewound = errors.New("the store is at an earlier revision than before, as after a restored backup")

// follow keeps the tables up to date from revision on until ctx ends.
func (s *Store) follow(ctx context.Context, revision int64) {
	wait := s.c.tuning.backoff
	for {
		last := revision
		var err error
		revision, err = s.watch(ctx, revision)
		if ctx.Err() != nil {
			return
		}
		s.watchesLost.Add(1)
		if errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, errRewound) || errors.Is(err, errApply) {
			s.log.Info("the watch can't go on where it was; reading everything anew", "revision", revision, "why", err)
			var now int64
			if now, err = s.reload(ctx); err == nil {
				revision = now
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the watch of the store was lost; trying again", "in", wait, "err", err)
		}
		if revision != last {
			wait = s.c.tuning.backoff
		}
		if !pause.For(ctx, wait) {
			return
		}
		wait = min(2*wait, maxBackoff)
	}
}

func (s *Store) reload(ctx context.Context) (int64, error) {
	ctx, cancel := deadline(ctx, s.c.OpenTimeout)
	defer cancel()
	return s.load(ctx, false)
}

// errApply says that events couldn't be brought into the tables.
var errApply = errors.New("events of the store don't fit the tables")

// watch applies events after revision until the watch is lost. It returns the
// last revision that it has applied.
func (s *Store) watch(ctx context.Context, revision int64) (int64, error) {
	if s.c.tuning.beforeWatch != nil {
		s.c.tuning.beforeWatch()
	}
	// Without a leader an external member can't tell us anything new: then look
	// for another one. The embedded one is the only one to ask; its watch goes on
	// when it is in touch again, and doesn't end meanwhile.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	s.mu.Lock()
	s.breakWatch = cancel
	s.mu.Unlock()
	ch := s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1),
		clientv3.WithProgressNotify())
	check := time.NewTicker(s.c.tuning.check)
	defer check.Stop()
	for {
		select {
		case resp, ok := <-ch:
			if !ok {
				return revision, errors.New("the watch has ended")
			}
			if err := resp.Err(); err != nil {
				return revision, err
			}
			var err error
			if revision, err = s.apply(revision, resp); err != nil {
				return revision, err
			}
		case <-check.C:
			if err := s.checkRevision(ctx, revision); err != nil {
				return revision, err
			}
		}
	}
}

// apply brings in the events of one answer, revision by revision.
func (s *Store) apply(revision int64, resp clientv3.WatchResponse) (int64, error) {
	events := resp.Events
	for len(events) > 0 {
		rev := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision != rev })
		if n < 0 {
			n = len(events)
		}
		if err := s.db.Apply(rev, s.read(events[:n])); err != nil {
			return revision, fmt.Errorf("%w: revision %d: %w", errApply, rev, err)
		}
		revision, events = rev, events[n:]
	}
	if resp.IsProgressNotify() && resp.Header.Revision > revision {
		revision = resp.Header.Revision
		if err := s.db.Apply(revision, nil); err != nil {
			return revision, fmt.Errorf("%w: revision %d: %w", errApply, revision, err)
		}
	}
	return revision, nil
}

// read turns the events of one revision into those of the tables. A value that
// can't be read changes nothing: the object stays as it was known last.
func (s *Store) read(events []*clientv3.Event) []state.Event {
	var out []state.Event
	for _, e := range events {
		deleted := e.Type == mvccpb.DELETE
		c, kind, id, err := parseKey(string(e.Kv.Key))
		switch {
		case err != nil:
			if deleted {
				s.readable(e.Kv)
				continue
			}
		case c == classLeader:
			t := Term{}
			if !deleted {
				t, _, err = termOf([]*mvccpb.KeyValue{e.Kv})
			}
			if err == nil {
				s.setLeader(t)
			}
		case c == classObject && deleted:
			out = append(out, state.Event{Kind: kind, Key: id})
		case c == classObject:
			var obj model.Object
			if obj, err = objectOf(kind, id, e.Kv); err == nil {
				out = append(out, state.Event{Kind: kind, Key: id, Object: obj})
			}
		}
		if err != nil {
			s.markUnreadable(e.Kv, err)
		} else {
			s.readable(e.Kv)
		}
	}
	return out
}

// checkRevision finds out that the store has been put back to an earlier state
// under us. A watch from a future revision would wait without a word.
func (s *Store) checkRevision(ctx context.Context, revision int64) error {
	ctx, cancel := deadline(ctx, s.c.OpTimeout)
	defer cancel()
	var opts []clientv3.OpOption
	if s.engine != nil {
		opts = append(opts, clientv3.WithSerializable())
	}
	now, err := s.askRevision(ctx, opts...)
	if err != nil {
		// The watch itself tells when it is lost; a slow answer is no reason.
		return nil
	}
	if now < revision {
		return errRewound
	}
	return nil
}

// load reads everything at one revision into the tables and returns the
// revision. strict makes a value that can't be read an error; otherwise the
// object stays as it was known last.
func (s *Store) load(ctx context.Context, strict bool) (int64, error) {
	for {
		objects, leader, revision, err := s.list(ctx, strict)
		if errors.Is(err, rpctypes.ErrCompacted) && ctx.Err() == nil {
			continue // the listing was slower than the compaction: start anew
		}
		if err != nil {
			return 0, err
		}
		s.setLeader(leader)
		if err := s.db.Replace(revision, objects); err != nil {
			return 0, fmt.Errorf("bring what is stored at revision %d into the tables: %w", revision, err)
		}
		return revision, nil
	}
}

// list reads all objects and the term, page by page, as of one revision.
func (s *Store) list(ctx context.Context, strict bool) (objects []model.Object, leader Term, revision int64, err error) {
	if s.c.tuning.beforeList != nil {
		s.c.tuning.beforeList()
	}
	snapshot := s.db.Snapshot()
	// Once the watch runs, what this member has is what there is to follow. It
	// can be read without a quorum.
	local := s.engine != nil && (!strict || s.engine.local())
	for from := prefix; from != ""; {
		opts := []clientv3.OpOption{
			clientv3.WithRange(prefixEnd(prefix)),
			clientv3.WithLimit(s.c.tuning.listLimit),
		}
		if revision > 0 {
			opts = append(opts, clientv3.WithRev(revision))
		}
		if local {
			opts = append(opts, clientv3.WithSerializable())
		}
		resp, err := s.client.Get(ctx, from, opts...)
		if err != nil {
			return nil, leader, 0, fmt.Errorf("list the keys from %q on: %w", from, classify(err))
		}
		if revision == 0 {
			revision = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			c, kind, id, err := parseKey(string(kv.Key))
			switch {
			case err != nil:
			case c == classLeader:
				leader, _, err = termOf([]*mvccpb.KeyValue{kv})
			case c == classMeta:
				_, err = decodeMeta(kv)
			case c == classObject:
				var obj model.Object
				if obj, err = objectOf(kind, id, kv); err != nil {
					obj = snapshot.Get(kind, id)
				}
				if obj != nil {
					objects = append(objects, obj)
				}
			}
			if err == nil {
				s.readable(kv)
				continue
			}
			if strict {
				return nil, leader, 0, err
			}
			s.markUnreadable(kv, err)
		}
		from = ""
		if resp.More {
			from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		}
	}
	return objects, leader, revision, nil
}

func (s *Store) markUnreadable(kv *mvccpb.KeyValue, err error) {
	s.log.Error("a stored value can't be read; what was known before stays in force",
		"key", string(kv.Key), "revision", kv.ModRevision, "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreadable[string(kv.Key)] = err
}

func (s *Store) readable(kv *mvccpb.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unreadable) > 0 {
		delete(s.unreadable, string(kv.Key))
	}
}

// Unreadable lists the keys whose last value could not be read, and why.
func (s *Store) Unreadable() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.unreadable)
}
