package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"kvnet/integration/cluster"
)

const (
	clients = 5
	// keys are in use at a time.
	keys = 6
	// pause is the longest time between two requests of a client: the servers share
	// the machine with it.
	pause = 20 * time.Millisecond
	// glance is how long a client waits for a plain read, which needs no other server.
	glance = 500 * time.Millisecond
	// patience is how long it waits for other answers at most, and glance at least.
	// Some survive the election of a leader; others are given up and come to pass
	// later, or are followed by requests to a server that doesn't know yet that it
	// has lost the lead.
	patience = 3 * time.Second
	// shun is the longest time for which a client avoids a server that hasn't
	// answered.
	shun = 6 * time.Second
)

// load is what the clients do.
type load struct {
	history *History
	keys    *Keys
	members []*cluster.Member
	value   atomic.Int64

	mu   sync.Mutex
	errs []error
}

// run has all clients send requests until the context ends.
func (l *load) run(ctx context.Context, seed uint64) {
	var wg sync.WaitGroup
	for n := range clients {
		c := &worker{load: l, client: Client{n, l.history}, random: rand.New(rand.NewPCG(seed, uint64(n))), lonely: map[*cluster.Member]time.Time{}, silent: map[*cluster.Member]time.Time{}}
		wg.Go(func() { c.run(ctx) })
	}
	wg.Wait()
}

// worker is a client that goes from server to server.
type worker struct {
	*load
	client Client
	random *rand.Rand
	// Until when the client asks a server for nothing that needs other servers, and
	// for nothing at all: else all clients would soon wait for the same dead server.
	lonely, silent map[*cluster.Member]time.Time
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		// A request that has begun gets its time.
		w.work(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(w.random.Int64N(int64(pause)))):
		}
	}
}

// work does one operation. What was written is sometimes read at once by another
// server, which is when old answers show.
func (w *worker) work(ctx context.Context) {
	// The lower a key's number, the more clients meet on it; the others last longer.
	slot := min(w.random.IntN(keys), w.random.IntN(keys))
	in := w.choose()
	key, ok := w.keys.Begin(slot, in.Kind != Read)
	if !ok {
		in = Input{Kind: Read, Consistent: true}
		key, _ = w.keys.Begin(slot, false)
	}
	in.Key = key.Name
	if in.Kind == Read {
		w.send(ctx, in, nil)
		return
	}
	at, out := w.send(ctx, in, nil)
	w.keys.Written(key, out.Outcome)
	if out.Outcome == Done && w.random.IntN(4) == 0 {
		if again, _ := w.keys.Begin(slot, false); again == key {
			w.send(ctx, Input{Kind: Read, Key: key.Name, Consistent: w.random.IntN(2) == 0}, at)
		}
	}
}

// choose is an operation without a key: half of them are reads, of both kinds.
func (w *worker) choose() Input {
	var in Input
	switch n := w.random.IntN(100); {
	case n < 25:
		in.Consistent = true
	case n < 50:
	case n < 65:
		in.Kind = Create
	case n < 92:
		in.Kind = Update
	default:
		in.Kind = Delete
	}
	if in.Kind == Create || in.Kind == Update {
		in.Value = fmt.Sprint("v", w.value.Add(1))
	}
	return in
}

// send sends a request to any server but one, and not to those that the client
// avoids.
func (w *worker) send(ctx context.Context, in Input, not *cluster.Member) (*cluster.Member, Output) {
	plain := in.Kind == Read && !in.Consistent
	m := w.server(not, plain)
	limit := glance
	if !plain {
		limit += time.Duration(w.random.Int64N(int64(patience - glance)))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := w.client.Do(ctx, m, in)
	if err != nil {
		w.fail(fmt.Errorf("%s: %w", m.Name, err))
	}
	if out.Outcome == Unknown {
		until := time.Now().Add(time.Duration(w.random.Int64N(int64(shun))))
		w.lonely[m] = until
		if plain {
			w.silent[m] = until
		}
	}
	return m, out
}

// server is any of those that the client doesn't avoid, or any at all.
func (w *worker) server(not *cluster.Member, plain bool) *cluster.Member {
	avoided := w.lonely
	if plain {
		avoided = w.silent
	}
	var good, all []*cluster.Member
	for _, m := range w.members {
		if m == not {
			continue
		}
		all = append(all, m)
		if time.Now().After(avoided[m]) {
			good = append(good, m)
		}
	}
	if len(good) == 0 {
		good = all
	}
	return good[w.random.IntN(len(good))]
}

// readAll reads all keys by all servers once more, when all are well again: what was
// acknowledged must be there whatever happened since.
func (l *load) readAll(ctx context.Context) error {
	for _, m := range l.members {
		if err := cluster.Await(ctx, 30*time.Second, "an answer of "+m.Name+" in the end", func() error {
			return Client{clients, l.history}.ReadAll(ctx, m, l.keys.Names())
		}); err != nil {
			return err
		}
	}
	return nil
}

// maxErrors are kept of what no fault explains.
const maxErrors = 10

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) < maxErrors {
		l.errs = append(l.errs, err)
	}
}

func (l *load) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}
