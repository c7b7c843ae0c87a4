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
	var id string
	var err error
	if s.engine != nil {
		id = s.engine.identity.Cluster.ID
	}
	if id == "" {
		if id, err = NewClusterID(); err != nil {
			return err
		}
	}
	value, err := encodeValue(meta{
		ClusterID: id,
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

// settle makes sure that the store and the data directory agree on which cluster
// this is, and that both know it from now on.
func (s *Store) settle(ctx context.Context, now time.Time) error {
	if err := s.makeMeta(ctx, now); err != nil || s.engine == nil {
		return err
	}
	m, _, err := s.readMeta(ctx)
	if err != nil {
		return err
	}
	id := s.engine.identity
	switch {
	case id.Cluster.ID == "": // made by a version without clusters
		if planned := s.c.Cluster.ID; planned != "" && planned != m.ClusterID {
			return fmt.Errorf("%w: the data is of cluster %s, not of %s", ErrOtherCluster, m.ClusterID, planned)
		}
		id.Cluster.ID = m.ClusterID
	case id.Previous != "":
		if err := s.adoptMeta(ctx, id); err != nil {
			return err
		}
		id.Previous, id.Epoch = "", 0
	case id.Cluster.ID != m.ClusterID:
		return fmt.Errorf("%w: the members are of cluster %s, this server was to be of %s", ErrOtherCluster, m.ClusterID, id.Cluster.ID)
	case id.Started && id.Name == s.c.Name:
		return nil
	}
	id.Started, id.Name = true, s.c.Name
	s.engine.identity = id
	return writeIdentity(s.c.Dir, id)
}

// adoptMeta makes restored data the new cluster's: its own id, and an epoch that
// switches have not seen from the old one. Of several members the first does it.
func (s *Store) adoptMeta(ctx context.Context, id Identity) error {
	for attempt := 0; ; attempt++ {
		m, modified, err := s.readMeta(ctx)
		if err != nil {
			return err
		}
		switch m.ClusterID {
		case id.Cluster.ID:
			return nil
		case id.Previous:
		default:
			return fmt.Errorf("%w: the members are of cluster %s, this server was restored for %s", ErrOtherCluster, m.ClusterID, id.Cluster.ID)
		}
		m.ClusterID, m.Epoch = id.Cluster.ID, max(id.Epoch, nextEpoch(m.Epoch, time.Unix(0, 0)))
		value, err := encodeValue(m)
		if err != nil {
			return err
		}
		p := s.newPlan()
		p.requireRevision(metaKey, modified, func(*mvccpb.KeyValue) error { return ErrConflict })
		p.put(metaKey, value)
		if _, err = s.commit(ctx, p, leaderWrite); !isConflict(err) || !backOff(ctx, attempt) {
			return err
		}
	}
}

// errNoMeta says that the store has not been made yet.
var errNoMeta = fmt.Errorf("%w: key %q is missing", ErrDamaged, metaKey)

// readMeta returns the meta key and its revision.
func (s *Store) readMeta(ctx context.Context) (meta, int64, error) {
	var opts []clientv3.OpOption
	if s.engine != nil && s.engine.local() {
		opts = append(opts, clientv3.WithSerializable())
	}
	resp, err := s.client.Get(ctx, metaKey, opts...)
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
			if !isConflict(err) || !backOff(ctx, attempt) {
				return 0, err
			}
		}
	})
	return epoch, err
}
