package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/internal/pause"
	"kvnet/model"
)

// Create stores a new object and returns the revision at which it is in force.
// The error is ErrExists if there is one of that key, or a BridgeTakenError.
func (s *Store) Create(ctx context.Context, obj model.Object) (int64, error) {
	doing := fmt.Sprintf("create %s %q", obj.Kind(), obj.Key())
	return s.op(ctx, OpCreate, doing, func(ctx context.Context) (int64, error) {
		p, err := s.planWrites([]Write{{New: obj}})
		if err != nil {
			return 0, err
		}
		return s.commit(ctx, p, clientWrite)
	})
}

// Update replaces a stored object by what f makes of it. f may be called
// several times, each time with an object of its own that it may change and
// return; its error is returned unchanged. If f changes nothing, nothing is
// written and the revision of the last write is returned.
func (s *Store) Update(ctx context.Context, kind model.Kind, key string, f func(old model.Object) (model.Object, error)) (int64, error) {
	doing := fmt.Sprintf("update %s %q", kind, key)
	return s.op(ctx, OpUpdate, doing, func(ctx context.Context) (int64, error) {
		return s.swap(ctx, kind, key, func(kv *mvccpb.KeyValue) (*plan, error) {
			old, err := objectOf(kind, key, kv)
			if err != nil {
				return nil, err
			}
			next, err := f(old)
			if err != nil {
				return nil, &callerError{err}
			}
			if next == nil || next.Kind() != kind || next.Key() != key {
				return nil, fmt.Errorf("an update must keep the kind and the name of the object")
			}
			// f may have changed the object that it was given.
			if old, err = objectOf(kind, key, kv); err != nil {
				return nil, err
			}
			p, err := s.planWrites([]Write{{Old: old, New: next}})
			if err == nil && p.writesOnly(kv) {
				return nil, nil
			}
			return p, err
		})
	})
}

// Delete removes a stored object. The error is ErrNotFound if there is none,
// ErrInUse for a router that a floating IP uses.
func (s *Store) Delete(ctx context.Context, kind model.Kind, key string) (int64, error) {
	doing := fmt.Sprintf("delete %s %q", kind, key)
	return s.op(ctx, OpDelete, doing, func(ctx context.Context) (int64, error) {
		return s.swap(ctx, kind, key, func(kv *mvccpb.KeyValue) (*plan, error) {
			old, err := objectOf(kind, key, kv)
			if err != nil {
				return nil, err
			}
			return s.planWrites([]Write{{Old: old}})
		})
	})
}

// Write is one step of Put.
type Write struct {
	// Old is the version that the writer has seen; its Modified must be the
	// stored one. nil: there must be none.
	Old model.Object
	// New is the version to be stored. nil: delete.
	New model.Object
}

// Put carries out several writes in one transaction: all or none. The error is
// ErrConflict if an Old is stale, ErrConflict and ErrExists if an object that
// must be absent is there, ErrInUse for a router that a floating IP uses before
// this transaction (even if it deletes that one too), or a BridgeTakenError.
func (s *Store) Put(ctx context.Context, changes []Write) (int64, error) {
	doing := fmt.Sprintf("write %d objects", len(changes))
	return s.op(ctx, OpPut, doing, func(ctx context.Context) (int64, error) {
		if len(changes) == 0 {
			return s.revision(ctx)
		}
		p, err := s.planWrites(changes)
		if err != nil {
			return 0, err
		}
		return s.commit(ctx, p, clientWrite)
	})
}

// planWrites makes the transaction of the writes, with the keys under ref/.
func (s *Store) planWrites(writes []Write) (*plan, error) {
	p := s.newPlan()
	for _, w := range writes {
		if err := p.object(w); err != nil {
			return nil, err
		}
	}
	if err := p.refs(writes); err != nil {
		return nil, err
	}
	return p, p.check(s.c.tuning.maxOps)
}

// object adds the write of one object, without the keys under ref/.
func (p *plan) object(w Write) error {
	obj := w.New
	if obj == nil {
		obj = w.Old
	}
	if obj == nil {
		return errors.New("a write needs an old or a new version")
	}
	key, ok := objectKey(obj.Kind(), obj.Key())
	if !ok {
		return fmt.Errorf("objects of kind %q are not stored", obj.Kind())
	}
	if w.Old != nil && (w.Old.Kind() != obj.Kind() || w.Old.Key() != obj.Key()) {
		return fmt.Errorf("a write can't turn %s %q into %s %q", w.Old.Kind(), w.Old.Key(), obj.Kind(), obj.Key())
	}
	if p.objects[key] {
		return fmt.Errorf("%s %q is written twice in one transaction", obj.Kind(), obj.Key())
	}
	p.objects[key] = true

	if w.Old == nil {
		p.requireAbsent(key, func(*mvccpb.KeyValue) error {
			return fmt.Errorf("%s %q: %w", obj.Kind(), obj.Key(), existsError{})
		})
	} else {
		p.requireRevision(key, w.Old.Stored().Modified, func(*mvccpb.KeyValue) error {
			return fmt.Errorf("%s %q: %w", obj.Kind(), obj.Key(), ErrConflict)
		})
	}
	if w.New == nil {
		p.delete(key)
		return nil
	}
	value, err := encodeObject(w.New, p.maxValue)
	if err != nil {
		return err
	}
	p.put(key, value)
	return nil
}

// swap reads an object, makes a transaction of it and repeats both while others
// write in between. A nil plan means that nothing is to be written.
func (s *Store) swap(ctx context.Context, kind model.Kind, key string, f func(*mvccpb.KeyValue) (*plan, error)) (int64, error) {
	k, ok := objectKey(kind, key)
	if !ok {
		return 0, fmt.Errorf("objects of kind %q are not stored", kind)
	}
	for attempt := 0; ; attempt++ {
		resp, err := s.client.Get(ctx, k)
		if err != nil {
			return 0, classify(err)
		}
		if len(resp.Kvs) == 0 {
			return 0, ErrNotFound
		}
		p, err := f(resp.Kvs[0])
		if err != nil {
			return 0, err
		}
		if p == nil {
			return resp.Kvs[0].ModRevision, nil
		}
		rev, err := s.commit(ctx, p, clientWrite)
		if !errors.Is(err, ErrConflict) {
			return rev, err
		}
		if !backOff(ctx, attempt) {
			return 0, fmt.Errorf("%w, again and again until the deadline", err)
		}
	}
}

// backOff waits a moment that grows a little with the attempts, so that writers of
// one object don't collide for ever. It returns false if ctx has ended.
func backOff(ctx context.Context, attempt int) bool {
	if attempt == 0 {
		return ctx.Err() == nil
	}
	return pause.For(ctx, rand.N(time.Duration(min(attempt, 20))*500*time.Microsecond))
}

// commit runs the transaction and returns its revision, or why it was refused.
func (s *Store) commit(ctx context.Context, p *plan, w writer) (int64, error) {
	if err := s.room(p, w); err != nil {
		return 0, err
	}
	resp, err := s.client.Txn(ctx).If(p.cmps()...).Then(p.ops...).Else(p.probes()...).Commit()
	if err != nil {
		err = classify(err)
		if errors.Is(err, ErrNoSpace) {
			s.relieve()
		}
		return 0, err
	}
	if !resp.Succeeded {
		return 0, p.refusal(resp.Responses)
	}
	return resp.Header.Revision, nil
}

// revision is the present revision of the store.
func (s *Store) revision(ctx context.Context) (int64, error) { return s.askRevision(ctx) }

func (s *Store) askRevision(ctx context.Context, opts ...clientv3.OpOption) (int64, error) {
	resp, err := s.client.Get(ctx, metaKey, append(opts, clientv3.WithKeysOnly())...)
	if err != nil {
		return 0, classify(err)
	}
	return resp.Header.Revision, nil
}

// objectOf reads a stored object with its revisions.
func objectOf(kind model.Kind, key string, kv *mvccpb.KeyValue) (model.Object, error) {
	obj, err := decodeObject(kind, key, kv.Value)
	if err != nil {
		return nil, fmt.Errorf("read the value of key %q: %w", kv.Key, err)
	}
	*obj.Stored() = model.Meta{Created: kv.CreateRevision, Modified: kv.ModRevision}
	return obj, nil
}

// callerError marks an error of Update's f, which is handed through unchanged.
type callerError struct{ error }

// Get reads one object from the store itself, not from the tables. The error is
// ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, kind model.Kind, key string) (obj model.Object, err error) {
	_, err = s.op(ctx, OpRead, fmt.Sprintf("read %s %q", kind, key), func(ctx context.Context) (int64, error) {
		k, ok := objectKey(kind, key)
		if !ok {
			return 0, fmt.Errorf("objects of kind %q are not stored", kind)
		}
		resp, err := s.client.Get(ctx, k)
		if err != nil {
			return 0, classify(err)
		}
		if len(resp.Kvs) == 0 {
			return 0, ErrNotFound
		}
		obj, err = objectOf(kind, key, resp.Kvs[0])
		return resp.Header.Revision, err
	})
	return obj, err
}
