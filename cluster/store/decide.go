package store

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"kvnet/model"
)

// Decision is one step of Decide, on an object of a decided kind.
type Decision struct {
	// Old is the decision to be replaced; its Modified must be the stored one.
	// nil: there must be none.
	Old model.Object
	// New is the new decision. nil: delete.
	New model.Object
}

// decideBatch is how many decisions go into one transaction. It leaves room for
// the leader's key under the limit of 128 of an external etcd.
const decideBatch = 100

// Decide writes what the leader has decided, if t is in force and no Old is
// stale; otherwise the error is ErrNotLeader or ErrConflict. Up to 100 decisions
// are one transaction; of more, each hundred is, and those before a refused
// one stand. The revision is that of the last transaction.
func (s *Store) Decide(ctx context.Context, t Term, d []Decision) (int64, error) {
	doing := fmt.Sprintf("write %d decisions under term %d", len(d), t.Term)
	return s.op(ctx, OpDecide, doing, func(ctx context.Context) (revision int64, err error) {
		if len(d) == 0 {
			return s.revision(ctx)
		}
		for batch := range slices.Chunk(d, decideBatch) {
			if revision, err = s.decide(ctx, t, batch); err != nil {
				return 0, err
			}
		}
		return revision, nil
	})
}

func (s *Store) decide(ctx context.Context, t Term, d []Decision) (int64, error) {
	mine, err := encodeValue(t)
	if err != nil {
		return 0, err
	}
	p := s.newPlan()
	p.requireValue(leaderKey, string(mine), notLeader)
	for _, x := range d {
		if err := p.object(Write(x)); err != nil {
			return 0, err
		}
		if k := x.kind(); !slices.Contains(model.DecidedKinds, k) {
			return 0, fmt.Errorf("objects of kind %q are not decided by the leader", k)
		}
	}
	return s.commit(ctx, p, leaderWrite)
}

func (d Decision) kind() model.Kind {
	if d.New != nil {
		return d.New.Kind()
	}
	return d.Old.Kind()
}

// notLeader says who leads instead.
func notLeader(kv *mvccpb.KeyValue) error {
	if kv == nil {
		return fmt.Errorf("%w: nobody leads", ErrNotLeader)
	}
	var t Term
	if err := decodeValue(kv.Value, &t); err != nil {
		return fmt.Errorf("%w: and the leader's key can't be read: %w", ErrNotLeader, err)
	}
	return fmt.Errorf("%w: %q leads under term %d of epoch %d", ErrNotLeader, t.Name, t.Term, t.Epoch)
}
