package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// meta is what is known of the store as a whole.
type meta struct {
	ClusterID string `json:"clusterId"` // random, made with the store
	Created   int64  `json:"created"`   // Unix seconds
	Epoch     uint32 `json:"epoch"`
	// Schema is the version of the layout of the keys.
	Schema int `json:"schema"`
}

// makeMeta makes the key that says what the store is, unless it is there.
func (s *Store) makeMeta(ctx context.Context, now time.Time) error {
	// Look first: a store without space for another write is still a store.
	if _, _, err := s.readMeta(ctx); !errors.Is(err, errNoMeta) {
		return err
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return fmt.Errorf("make a cluster id: %w", err)
	}
	value, err := encodeValue(meta{
		ClusterID: hex.EncodeToString(id[:]),
		Created:   now.Unix(),
		Epoch:     nextEpoch(0, now),
		Schema:    schemaVersion,
	})
	if err != nil {
		return err
	}
	p := s.newPlan()
	p.requireAbsent(metaKey, func(*mvccpb.KeyValue) error { return existsError{} })
	p.put(metaKey, value)
	if _, err = s.commit(ctx, p, leaderWrite); errors.Is(err, ErrExists) {
		return nil // another server was first
	}
	if err != nil {
		return fmt.Errorf("write key %q: %w", metaKey, err)
	}
	return nil
}

// errNoMeta says that the store has not been made yet.
var errNoMeta = fmt.Errorf("%w: key %q is missing", ErrDamaged, metaKey)

// readMeta returns the meta key and its revision.
func (s *Store) readMeta(ctx context.Context) (meta, int64, error) {
	resp, err := s.client.Get(ctx, metaKey)
	if err != nil {
		return meta{}, 0, fmt.Errorf("read key %q: %w", metaKey, classify(err))
	}
	if len(resp.Kvs) == 0 {
		return meta{}, 0, errNoMeta
	}
	m, err := decodeMeta(resp.Kvs[0])
	return m, resp.Kvs[0].ModRevision, err
}

func decodeMeta(kv *mvccpb.KeyValue) (meta, error) {
	var m meta
	err := decodeValue(kv.Value, &m)
	if err == nil && m.Schema > schemaVersion {
		err = fmt.Errorf("%w: its layout is version %d, this kvnet knows %d", ErrNewer, m.Schema, schemaVersion)
	}
	if err != nil {
		return m, fmt.Errorf("read the value of key %q: %w", metaKey, err)
	}
	return m, nil
}

// nextEpoch is the epoch after old. It follows the clock, because switches
// remember the highest generation that they have seen, also of a store that is
// no more.
func nextEpoch(old uint32, now time.Time) uint32 {
	clock := uint32(min(max(now.Unix(), 0), math.MaxUint32))
	if old == math.MaxUint32 {
		return old
	}
	return max(clock, old+1)
}

// Created is when the store was made.
func (s *Store) Created(ctx context.Context) (created time.Time, err error) {
	_, err = s.op(ctx, OpRead, "read when the store was made", func(ctx context.Context) (int64, error) {
		m, _, err := s.readMeta(ctx)
		created = time.Unix(m.Created, 0)
		return 0, err
	})
	return created, err
}

// ClusterID is the random id that was made with the store.
func (s *Store) ClusterID(ctx context.Context) (id string, err error) {
	_, err = s.op(ctx, OpRead, "read the cluster id", func(ctx context.Context) (int64, error) {
		m, _, err := s.readMeta(ctx)
		id = m.ClusterID
		return 0, err
	})
	return id, err
}

// RaiseEpoch makes sure that the epoch is at least atLeast and returns it. The
// leader has to take a new term for it to count.
func (s *Store) RaiseEpoch(ctx context.Context, atLeast uint32) (epoch uint32, err error) {
	doing := fmt.Sprintf("raise the epoch to %d", atLeast)
	_, err = s.op(ctx, OpTerm, doing, func(ctx context.Context) (int64, error) {
		for attempt := 0; ; attempt++ {
			m, modified, err := s.readMeta(ctx)
			if err != nil {
				return 0, err
			}
			if epoch = m.Epoch; epoch >= atLeast {
				return modified, nil
			}
			epoch, m.Epoch = atLeast, atLeast
			value, err := encodeValue(m)
			if err != nil {
				return 0, err
			}
			p := s.newPlan()
			p.requireRevision(metaKey, modified, func(*mvccpb.KeyValue) error { return ErrConflict })
			p.put(metaKey, value)
			rev, err := s.commit(ctx, p, leaderWrite)
			if err == nil {
				return rev, nil
			}
			if !isConflict(err) || !pause(ctx, attempt) {
				return 0, err
			}
		}
	})
	return epoch, err
}
