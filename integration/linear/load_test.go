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
	// keys are used at a time. After a round come new ones, as a check takes the
	// longer the more writes of a key are open.
	keys  = 3
	round = 10 * time.Second
	// pause is the longest time between two requests of a client: the servers share
	// the machine with it.
	pause = 20 * time.Millisecond
)

// load is what the clients do.
type load struct {
	history *History
	members []*cluster.Member
	began   time.Time

	value atomic.Int64
	// rounds is how many rounds there were, once run has returned.
	rounds int64

	mu   sync.Mutex
	errs []error
}

// run has all clients send requests until the context ends.
func (l *load) run(ctx context.Context, seed uint64) {
	var wg sync.WaitGroup
	for n := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		wg.Go(func() { l.client(ctx, Client{n, l.history}, random) })
	}
	wg.Wait()
	l.rounds = l.round() + 1
}

func (l *load) round() int64 { return int64(time.Since(l.began) / round) }

func (l *load) client(ctx context.Context, c Client, random *rand.Rand) {
	for ctx.Err() == nil {
		m := l.members[random.IntN(len(l.members))]
		// A request that has begun gets its time.
		if _, err := c.Do(context.WithoutCancel(ctx), m, l.next(random)); err != nil {
			l.fail(fmt.Errorf("%s: %w", m.Name, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.Int64N(int64(pause)))):
		}
	}
}

// next is an operation: half of them are reads, of both kinds.
func (l *load) next(random *rand.Rand) Input {
	in := Input{Key: key(l.round(), random.IntN(keys))}
	switch n := random.IntN(100); {
	case n < 25:
		in.Kind, in.Consistent = Read, true
	case n < 50:
		in.Kind = Read
	case n < 65:
		in.Kind = Create
	case n < 92:
		in.Kind = Update
	default:
		in.Kind = Delete
	}
	if in.Kind == Create || in.Kind == Update {
		in.Value = fmt.Sprint("v", l.value.Add(1))
	}
	return in
}

func key(round int64, n int) string { return fmt.Sprintf("linear-%d-%d", round, n) }

// readAll reads all keys by all servers once more, when all are well again: what was
// acknowledged must be there whatever happened since.
func (l *load) readAll(ctx context.Context) error {
	c := Client{clients, l.history}
	for r := range l.rounds {
		for n := range keys {
			for _, m := range l.members {
				for _, consistent := range []bool{true, false} {
					out, err := c.Do(ctx, m, Input{Kind: Read, Key: key(r, n), Consistent: consistent})
					if err == nil && out.Outcome != Done {
						err = errors.New("no answer, though all servers are well")
					}
					if err != nil {
						return fmt.Errorf("read %s by %s in the end: %w", key(r, n), m.Name, err)
					}
				}
			}
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
