package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/model"
)

// plan is a transaction in the making. Each condition brings along what to look
// at when the transaction was refused, so that the answer names the condition
// that didn't hold as it was at that very revision.
type plan struct {
	conditions []condition
	ops        []clientv3.Op
	puts       int             // bytes of keys and values
	objects    map[string]bool // keys of objects that are written
	maxValue   int             // bytes of a value
}

func (s *Store) newPlan() *plan {
	max := maxMessage
	if s.engine != nil {
		max = maxRequest
	}
	return &plan{objects: map[string]bool{}, maxValue: max}
}

type condition struct {
	cmp   clientv3.Cmp
	probe clientv3.Op
	// broken tells from the probe's answer why cmp doesn't hold; nil: it does.
	broken func(kvs []*mvccpb.KeyValue) error
}

func (p *plan) require(c condition) { p.conditions = append(p.conditions, c) }

func (p *plan) put(key string, value []byte) {
	p.ops = append(p.ops, clientv3.OpPut(key, string(value)))
	p.puts += len(key) + len(value)
}

func (p *plan) delete(key string) { p.ops = append(p.ops, clientv3.OpDelete(key)) }

// requireAbsent demands that there is no such key.
func (p *plan) requireAbsent(key string, broken func(*mvccpb.KeyValue) error) {
	p.require(condition{
		cmp:   clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
		probe: clientv3.OpGet(key),
		broken: func(kvs []*mvccpb.KeyValue) error {
			if len(kvs) == 0 {
				return nil
			}
			return broken(kvs[0])
		},
	})
}

// requireRevision demands that the key was last written at that revision. broken
// gets nil if the key is gone.
func (p *plan) requireRevision(key string, revision int64, broken func(*mvccpb.KeyValue) error) {
	p.require(condition{
		cmp:   clientv3.Compare(clientv3.ModRevision(key), "=", revision),
		probe: clientv3.OpGet(key),
		broken: func(kvs []*mvccpb.KeyValue) error {
			switch {
			case len(kvs) == 0:
				return broken(nil)
			case kvs[0].ModRevision != revision:
				return broken(kvs[0])
			}
			return nil
		},
	})
}

// requireValue demands that the key has that value.
func (p *plan) requireValue(key, value string, broken func(*mvccpb.KeyValue) error) {
	p.require(condition{
		cmp:   clientv3.Compare(clientv3.Value(key), "=", value),
		probe: clientv3.OpGet(key),
		broken: func(kvs []*mvccpb.KeyValue) error {
			switch {
			case len(kvs) == 0:
				return broken(nil)
			case string(kvs[0].Value) != value:
				return broken(kvs[0])
			}
			return nil
		},
	})
}

// requireUnused demands that no floating IP uses the router.
func (p *plan) requireUnused(router string) {
	refs := routerRefs(router)
	p.require(condition{
		cmp:   clientv3.Compare(clientv3.CreateRevision(refs), "=", 0).WithPrefix(),
		probe: clientv3.OpGet(refs, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
		broken: func(kvs []*mvccpb.KeyValue) error {
			if len(kvs) == 0 {
				return nil
			}
			return fmt.Errorf("%w: floating IP %q uses router %q", ErrInUse, lastSegment(string(kvs[0].Key)), router)
		},
	})
}

// refs adds what the writes mean for the keys under ref/.
func (p *plan) refs(writes []Write) error {
	held := map[string]string{}           // key: value that a write gives up
	wanted := map[string]string{}         // key: value that a write brings
	bridge := map[string]model.DeviceID{} // key: bridge, for messages
	for _, w := range writes {
		for _, r := range refsOf(w.Old) {
			held[r.key] = r.value
		}
		for _, r := range refsOf(w.New) {
			if other, ok := wanted[r.key]; ok && other != r.value {
				return &BridgeTakenError{Bridge: r.bridge, Host: other}
			}
			wanted[r.key] = r.value
			bridge[r.key] = r.bridge
		}
		if r, ok := w.Old.(*model.Router); ok && w.New == nil {
			p.requireUnused(r.Name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value := wanted[key]
		old, had := held[key]
		if had && old == value {
			continue
		}
		if id := bridge[key]; id != "" {
			taken := func(kv *mvccpb.KeyValue) error {
				if kv == nil {
					return ErrConflict
				}
				return &BridgeTakenError{Bridge: id, Host: string(kv.Value)}
			}
			if had {
				p.requireValue(key, old, taken)
			} else {
				p.requireAbsent(key, taken)
			}
		}
		p.put(key, []byte(value))
	}
	for _, key := range slices.Sorted(maps.Keys(held)) {
		if _, ok := wanted[key]; !ok {
			p.delete(key)
		}
	}
	return nil
}

// ref is one key under ref/ that an object holds.
type ref struct {
	key, value string
	bridge     model.DeviceID // empty: not about a bridge
}

func refsOf(obj model.Object) []ref {
	switch o := obj.(type) {
	case *model.FloatingIP:
		if o.RouterName != "" {
			return []ref{{key: routerRef(o.RouterName, o.ID), value: o.ID}}
		}
	case *model.Node:
		var out []ref
		for _, b := range []model.DeviceID{o.IntegrationBridge, o.TunnelBridge} {
			if b != "" {
				out = append(out, ref{key: bridgeRef(b), value: o.Hostname, bridge: b})
			}
		}
		return out
	}
	return nil
}

// writesOnly tells whether the plan does nothing but store the value that kv has
// already.
func (p *plan) writesOnly(kv *mvccpb.KeyValue) bool {
	return len(p.ops) == 1 && p.ops[0].IsPut() &&
		bytes.Equal(p.ops[0].KeyBytes(), kv.Key) && bytes.Equal(p.ops[0].ValueBytes(), kv.Value)
}

// check refuses a plan that is over the engine's limit of operations.
func (p *plan) check(maxOps int) error {
	if n := max(len(p.conditions), len(p.ops)); n > maxOps {
		return fmt.Errorf("%w: %d operations in one transaction, the limit is %d", ErrTooLarge, n, maxOps)
	}
	return nil
}

func (p *plan) cmps() []clientv3.Cmp {
	out := make([]clientv3.Cmp, len(p.conditions))
	for i, c := range p.conditions {
		out[i] = c.cmp
	}
	return out
}

func (p *plan) probes() []clientv3.Op {
	out := make([]clientv3.Op, len(p.conditions))
	for i, c := range p.conditions {
		out[i] = c.probe
	}
	return out
}

// refusal tells from the answers to the probes which condition didn't hold.
func (p *plan) refusal(answers []*etcdserverpb.ResponseOp) error {
	for i, a := range answers {
		if i >= len(p.conditions) {
			break
		}
		if err := p.conditions[i].broken(a.GetResponseRange().GetKvs()); err != nil {
			return err
		}
	}
	return errors.New("the store refused a transaction whose conditions hold")
}
