package state

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cilium/statedb"

	"kvnet/model"
)

// DB holds the tables. Its zero value is not usable; see New.
type DB struct {
	db *statedb.DB
	t  *tables

	// mu orders writes, and the publication of a snapshot with the delivery of
	// its changes. It is held over memory operations only.
	mu      sync.Mutex
	subs    map[*Subscription]struct{}
	wake    chan struct{} // closed when a snapshot is published; nil: nobody waits for it
	waiting map[*revisionWaiter]struct{}

	current atomic.Pointer[Snapshot]
}

// New makes an empty DB.
func New() *DB {
	db := statedb.New()
	d := &DB{db: db, t: newTables(db), subs: map[*Subscription]struct{}{}, waiting: map[*revisionWaiter]struct{}{}}
	d.current.Store(&Snapshot{txn: db.ReadTxn(), t: d.t})
	return d
}

// Snapshot returns the present state.
func (d *DB) Snapshot() Snapshot { return *d.current.Load() }

// Event is a stored object at one revision. A nil Object means that it is gone.
type Event struct {
	Kind   model.Kind
	Key    string
	Object model.Object
}

// Apply brings in all events of one revision of the store.
func (d *DB) Apply(revision int64, events []Event) error {
	kinds := make([]model.Kind, 0, 1)
	for _, e := range events {
		if !slices.Contains(kinds, e.Kind) {
			kinds = append(kinds, e.Kind)
		}
	}
	return d.write(kinds, func(txn statedb.WriteTxn, ch *[]model.Change) error {
		for _, e := range events {
			if err := d.apply(txn, e, ch); err != nil {
				return err
			}
		}
		return nil
	}, func(s *Snapshot) { s.revision = revision })
}

// Replace makes the stored tables equal to objects, which is everything that the
// store held at revision. The difference, deletes too, is delivered as changes,
// and the snapshot is complete from then on.
func (d *DB) Replace(revision int64, objects []model.Object) error {
	want := map[model.Kind]map[string]bool{}
	for _, o := range objects {
		if want[o.Kind()] == nil {
			want[o.Kind()] = map[string]bool{}
		}
		want[o.Kind()][o.Key()] = true
	}
	stored := slices.Concat(model.WantedKinds, model.DecidedKinds)
	return d.write(stored, func(txn statedb.WriteTxn, ch *[]model.Change) error {
		for _, k := range stored {
			for _, key := range d.t.byKind[k].keys(txn) {
				if !want[k][key] {
					if err := d.apply(txn, Event{Kind: k, Key: key}, ch); err != nil {
						return err
					}
				}
			}
		}
		for _, o := range objects {
			if old, ok := d.t.byKind[o.Kind()].find(txn, o.Key()); ok && *old.Stored() == *o.Stored() {
				continue
			}
			if err := d.apply(txn, Event{Kind: o.Kind(), Key: o.Key(), Object: o}, ch); err != nil {
				return err
			}
		}
		return nil
	}, func(s *Snapshot) { s.revision, s.complete = revision, true })
}

func (d *DB) apply(txn statedb.WriteTxn, e Event, ch *[]model.Change) error {
	t, ok := d.t.byKind[e.Kind]
	if !ok {
		return fmt.Errorf("state has no table for objects of kind %q", e.Kind)
	}
	var old model.Object
	var err error
	if e.Object == nil {
		old, err = t.remove(txn, e.Key)
	} else {
		old, err = t.insert(txn, e.Object)
	}
	if err != nil {
		return fmt.Errorf("change %s %q in the state: %w", e.Kind, e.Key, err)
	}
	if old == nil && e.Object == nil {
		return nil
	}
	*ch = append(*ch, model.Change{Kind: e.Kind, Key: e.Key, Old: old, New: e.Object})
	return nil
}

// write runs f in a transaction over the tables of these kinds, publishes the
// snapshot and delivers the changes. A table costs something also if nothing in it
// changes.
func (d *DB) write(kinds []model.Kind, f func(statedb.WriteTxn, *[]model.Change) error, publish func(*Snapshot)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	txn := d.db.WriteTxn(d.t.of(kinds)...)
	var changes []model.Change
	if err := f(txn, &changes); err != nil {
		txn.Abort()
		return err
	}
	next := d.Snapshot()
	next.txn = txn.Commit()
	if publish != nil {
		publish(&next)
	}
	d.current.Store(&next)
	d.tell(next.revision)
	for s := range d.subs {
		s.add(changes)
	}
	return nil
}
