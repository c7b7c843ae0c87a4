package rest

import (
	"context"
	"log/slog"
	"sort"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/model/state"
)

// feed holds the last events for the streams, all of which read from the same
// place: a stream that is slow costs no memory of its own and holds nobody up.
//
// Events of all objects that were changed together are one batch, whose revision
// is that of the snapshot after them. Usually that is one revision of the store.
// If the feed itself is late, changes of one object are merged
// (state.Subscription), and a batch spans several revisions: whoever applies it as
// a whole has the state at its revision in any case.
type feed struct {
	db     *state.DB
	forms  *forms
	log    *slog.Logger
	made   *prometheus.CounterVec // events by name
	keep   int                    // bytes of events that are held
	places chan struct{}          // of streams

	begun chan struct{} // closed when the feed knows what is stored
	done  chan struct{} // closed when the feed has ended

	mu      sync.Mutex
	batches []*batch
	first   uint64 // the place of batches[0] among all batches ever
	size    int
	// revision is the one that the feed has reached. Batches after floor are
	// held without a gap.
	revision, floor int64
	wake            chan struct{} // closed and replaced when there is a batch
}

// batch is what changed together.
type batch struct {
	revision int64
	events   []event
	size     int
}

// event is one event as it is sent, without its id.
type event struct {
	name string
	data []byte
}

func newFeed(db *state.DB, kept *forms, l EventLimits, m *metrics, log *slog.Logger) *feed {
	return &feed{
		db: db, forms: kept, log: log, made: m.events, keep: l.Keep, places: make(chan struct{}, l.Streams),
		begun: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}),
	}
}

// run fills the feed until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	sub, prev := f.db.Subscribe()
	defer sub.Close()
	for !prev.Complete() {
		next, _, err := sub.Next(ctx)
		if err != nil {
			return
		}
		prev = next
	}
	f.revision, f.floor = prev.Revision(), prev.Revision()
	close(f.begun)
	for {
		next, changes, err := sub.Next(ctx)
		if err != nil {
			return
		}
		f.forms.forget(changes)
		if events := describe(f.log, prev, next, changes); len(events) > 0 || next.Revision() != prev.Revision() {
			f.add(next.Revision(), events)
		}
		prev = next
	}
}

// add takes in the events up to a revision.
func (f *feed) add(revision int64, events []event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if revision < f.revision || revision == f.revision && len(events) > 0 {
		// The store was put back to an earlier state. Its revisions up to the
		// one that was reached before are ambiguous now.
		f.log.Info("the store has gone back; readers of events have to list anew", "revision", revision, "was", f.revision)
		f.drop(len(f.batches))
		f.floor = max(f.floor, f.revision)
		events = []event{resync(revision, "the store was put back to an earlier state")}
	}
	f.revision = revision
	if len(events) == 0 {
		return
	}
	b := &batch{revision: revision, events: events}
	for i, e := range events {
		f.made.WithLabelValues(e.name).Inc()
		if i == 0 || &e.data[0] != &events[i-1].data[0] {
			b.size += len(e.data)
		}
	}
	f.batches, f.size = append(f.batches, b), f.size+b.size
	// The newest stays, however large: nobody could have read it yet.
	drop := 0
	for size := f.size; drop < len(f.batches)-1 && (size > f.keep || len(f.batches)-drop > maxBatches); drop++ {
		size -= f.batches[drop].size
	}
	f.drop(drop)
	close(f.wake)
	f.wake = make(chan struct{})
}

// maxBatches bounds the number of batches that are held; events are small.
const maxBatches = 16384

// drop forgets the n oldest batches; called with f.mu held.
func (f *feed) drop(n int) {
	for i, b := range f.batches[:n] {
		f.size -= b.size
		f.floor = max(f.floor, b.revision)
		f.batches[i] = nil
	}
	f.batches, f.first = f.batches[n:], f.first+uint64(n)
}

// join returns the place of the first batch after a revision and the revision of
// the place. If not all batches since are held, ok is false and the place is that
// of what comes next.
func (f *feed) join(since int64) (place uint64, revision int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since < f.floor || since > f.revision {
		return f.first + uint64(len(f.batches)), f.revision, false
	}
	i := sort.Search(len(f.batches), func(i int) bool { return f.batches[i].revision > since })
	return f.first + uint64(i), since, true
}

// end is the place of what comes next, and its revision.
func (f *feed) end() (place uint64, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first + uint64(len(f.batches)), f.revision
}

// at returns the batch at a place; nil if it is not there yet, which closes wake
// then. It is lost if it was there and isn't held any more.
func (f *feed) at(place uint64) (b *batch, wake <-chan struct{}, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case place < f.first:
		return nil, nil, true
	case place-f.first < uint64(len(f.batches)):
		return f.batches[place-f.first], nil, false
	}
	return nil, f.wake, false
}
