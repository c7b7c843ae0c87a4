package leader

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kvnet/cluster/store"
	"kvnet/internal/pause"
)

// Terms is where terms are taken. *store.Store implements it.
type Terms interface {
	// TakeTermAfter makes the caller the leader under a new term, if the term
	// seen is still the last one.
	TakeTermAfter(ctx context.Context, name, instance string, seen store.Term) (store.Term, error)
	// CurrentTerm asks the store which term is in force.
	CurrentTerm(ctx context.Context) (store.Term, error)
	// Leader is the term last seen in force, with a channel that is closed when
	// another one is seen.
	Leader() (store.Term, <-chan struct{})
}

// LeadershipConfig says who leads and who wants to know.
type LeadershipConfig struct {
	Store Terms
	// Name is the name of this server.
	Name string
	// OnElected is called when this server has begun to lead. ctx ends with the
	// term. OnLost is called when it leads no longer, before another OnElected.
	// Neither may block: the leadership is not watched meanwhile.
	OnElected func(ctx context.Context, t store.Term)
	OnLost    func(t store.Term)
	// Stand blocks until this server should stand for leader. nil: at once, as
	// fits a single server.
	Stand func(ctx context.Context) error
	// CheckInterval is how often the store is asked whether the term is in
	// force. Default 1 s. Another leader's term is noticed at once all the same.
	CheckInterval time.Duration
	// Patience is the lease of the term: for how long it is held after a moment
	// at which it was surely in force. Default 5 s.
	Patience time.Duration
	// Attempt is the deadline of one attempt to take a term. Default Patience.
	Attempt time.Duration
	// Timing tells CheckInterval and Patience anew whenever the store was asked,
	// for a cluster that grows or shrinks. nil: they stay as they are.
	Timing func() (checkInterval, patience time.Duration)
	// Logger gets changes of leadership. Default slog.Default().
	Logger *slog.Logger
}

// Leadership takes a term for this life of the process, watches that it stays in
// force and takes another one when it was lost.
type Leadership struct {
	c        LeadershipConfig
	instance string
	renew    chan struct{}

	mu    sync.Mutex
	term  store.Term
	held  bool
	until time.Time // the end of the lease
}

// The timing among several servers, for LeadershipConfig. A leader that is cut
// off from the quorum stops after ClusterPatience. That limits only for how long
// it goes on in vain: a new leader doesn't wait for it, because the switches and
// the store refuse the old term. The patience is longer than the 1.0 s that an
// election of the embedded store may take, so that the death of another server
// doesn't cost this one its term.
const (
	ClusterCheckInterval = 150 * time.Millisecond
	ClusterPatience      = 1500 * time.Millisecond
)

// The pauses between attempts to get a term.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
	// maxOutage is the longest pause while the store doesn't answer: when it does
	// again, nobody may lead before this server tries.
	maxOutage = time.Second
	// tellOutage is how often a lasting outage is told of.
	tellOutage = 30 * time.Second
)

// NewLeadership makes a Leadership with a random instance. It does nothing until
// Run.
func NewLeadership(c LeadershipConfig) (*Leadership, error) {
	c.CheckInterval = cmp.Or(c.CheckInterval, time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	c.Attempt = cmp.Or(c.Attempt, c.Patience)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Stand == nil {
		c.Stand = context.Cause
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("make an instance id: %w", err)
	}
	return &Leadership{c: c, instance: hex.EncodeToString(id[:]), renew: make(chan struct{}, 1)}, nil
}

// Instance is the random name of this life of the process.
func (l *Leadership) Instance() string { return l.instance }

// Term is the term under which this server leads; ok is false if it doesn't.
// After a pause of the process it is false at once, before anything else has
// noticed that the lease has ended.
func (l *Leadership) Term() (t store.Term, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term, l.held && time.Now().Before(l.until)
}

// Renew gives up the term and takes a later one, as is needed after the epoch
// was raised.
func (l *Leadership) Renew() {
	select {
	case l.renew <- struct{}{}:
	default:
	}
}

// Run takes terms until ctx ends. It returns the context's cause.
func (l *Leadership) Run(ctx context.Context) error {
	backoff := minBackoff
	var told time.Time // when an outage was told of last
	for {
		if err := l.c.Stand(ctx); err != nil {
			return err
		}
		// The lease begins before the term is asked for: it is in force from some
		// moment after that.
		asked := time.Now()
		t, err := l.take(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case errors.Is(err, store.ErrConflict):
			l.c.Logger.Info("another server was faster to take the lead", "err", err)
			backoff = minBackoff
		case err != nil:
			if errors.Is(err, store.ErrUnavailable) {
				backoff = min(backoff, maxOutage)
			}
			if time.Since(told) > tellOutage {
				told = time.Now()
				l.c.Logger.Warn("no term to lead under; trying again and again", "err", err)
			}
		default:
			began := time.Now()
			why := l.lead(ctx, t, asked)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if errors.Is(why, errRenew) {
				backoff = minBackoff
				continue
			}
			// Two servers that take the lead from each other must slow down.
			if time.Since(began) > maxBackoff {
				backoff = minBackoff
			}
			l.c.Logger.Warn("this server leads no longer; standing again", "term", t.Term, "in", backoff, "err", why)
		}
		if !pause.For(ctx, backoff) {
			return context.Cause(ctx)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

func (l *Leadership) take(ctx context.Context) (store.Term, error) {
	ctx, cancel := context.WithTimeout(ctx, l.c.Attempt)
	defer cancel()
	seen, _ := l.c.Store.Leader()
	return l.c.Store.TakeTermAfter(ctx, l.c.Name, l.instance, seen)
}

// errLease ends a term that the store has not confirmed for too long.
var errLease = errors.New("the store has not confirmed the term for too long")

// errRenew ends a term that Renew gave up.
var errRenew = errors.New("a later term is wanted")

// lead holds the term t, which was in force at some moment after confirmed, until
// it is lost, and returns why. Its context ends with the lease on the monotonic
// clock, also while the store is being asked and doesn't answer.
func (l *Leadership) lead(ctx context.Context, t store.Term, confirmed time.Time) (why error) {
	ctx, cancel := context.WithCancelCause(ctx)
	interval, patience := l.timing()
	lease := time.AfterFunc(time.Until(confirmed.Add(patience)), func() { cancel(errLease) })
	defer lease.Stop()
	l.set(t, true, confirmed.Add(patience))
	l.c.Logger.Info("this server leads", "term", t.Term, "epoch", t.Epoch)
	if l.c.OnElected != nil {
		l.c.OnElected(ctx, t)
	}
	defer func() {
		l.set(t, false, time.Time{})
		cancel(why)
		if l.c.OnLost != nil {
			l.c.OnLost(t)
		}
	}()
	check := time.NewTimer(interval)
	defer check.Stop()
	var last error // of the store
	for {
		seen, changed := l.c.Store.Leader()
		// A term of ours that the watch hasn't seen yet is no other's.
		if seen.Generation() > t.Generation() {
			return fmt.Errorf("%w: %q leads under term %d", store.ErrNotLeader, seen.Name, seen.Term)
		}
		select {
		case <-ctx.Done():
			return ended(ctx, last)
		case <-l.renew:
			return errRenew
		case <-changed:
		case <-check.C:
			interval, patience = l.timing()
			check.Reset(interval)
			// The answer tells about some moment after the question.
			asked := time.Now()
			now, err := l.c.Store.CurrentTerm(ctx)
			switch {
			case err != nil: // until the lease ends
				last = err
			case now != t:
				return fmt.Errorf("%w: %q leads under term %d", store.ErrNotLeader, now.Name, now.Term)
			case !lease.Stop():
				return errLease // it ended while the answer was on its way
			default:
				l.set(t, true, asked.Add(patience))
				lease.Reset(time.Until(asked.Add(patience)))
			}
		}
	}
}

// ended is why the context of a term has ended, with what the store said last.
func ended(ctx context.Context, last error) error {
	why := context.Cause(ctx)
	if errors.Is(why, errLease) && last != nil {
		return fmt.Errorf("%w: %w", why, last)
	}
	return why
}

// timing is how often to ask, and for how long a term is held after an answer.
func (l *Leadership) timing() (interval, patience time.Duration) {
	if l.c.Timing != nil {
		return l.c.Timing()
	}
	return l.c.CheckInterval, l.c.Patience
}

func (l *Leadership) set(t store.Term, held bool, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.held, l.until = t, held, until
}
