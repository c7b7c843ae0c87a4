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
)

// Terms is where terms are taken. *store.Store implements it.
type Terms interface {
	// TakeTerm makes the caller the leader under a new term.
	TakeTerm(ctx context.Context, name, instance string) (store.Term, error)
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
	// Patience is for how long the store may fail to confirm the term before it
	// counts as lost. Default 5 s.
	Patience time.Duration
	// Logger gets changes of leadership. Default slog.Default().
	Logger *slog.Logger
}

// Leadership takes a term for this life of the process, watches that it stays in
// force and takes another one when it was lost.
type Leadership struct {
	c        LeadershipConfig
	instance string
	renew    chan struct{}

	mu   sync.Mutex
	term store.Term
	held bool
}

// The pauses between attempts to get a term.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// NewLeadership makes a Leadership with a random instance. It does nothing until
// Run.
func NewLeadership(c LeadershipConfig) (*Leadership, error) {
	c.CheckInterval = cmp.Or(c.CheckInterval, time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
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
func (l *Leadership) Term() (t store.Term, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term, l.held
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
	for {
		if err := l.c.Stand(ctx); err != nil {
			return err
		}
		t, err := l.c.Store.TakeTerm(ctx, l.c.Name, l.instance)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			l.c.Logger.Warn("no term to lead under; trying again", "in", backoff, "err", err)
		} else {
			began := time.Now()
			why := l.lead(ctx, t)
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
		if !sleep(ctx, backoff) {
			return context.Cause(ctx)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// errRenew ends a term that Renew gave up.
var errRenew = errors.New("a later term is wanted")

// lead holds the term t until it is lost, and returns why.
func (l *Leadership) lead(ctx context.Context, t store.Term) (why error) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.set(t, true)
	l.c.Logger.Info("this server leads", "term", t.Term, "epoch", t.Epoch)
	if l.c.OnElected != nil {
		l.c.OnElected(ctx, t)
	}
	defer func() {
		l.set(t, false)
		cancel(why)
		if l.c.OnLost != nil {
			l.c.OnLost(t)
		}
	}()
	tick := time.NewTicker(l.c.CheckInterval)
	defer tick.Stop()
	confirmed := time.Now()
	for {
		seen, changed := l.c.Store.Leader()
		// A term of ours that the watch hasn't seen yet is no other's.
		if seen.Generation() > t.Generation() {
			return fmt.Errorf("%w: %q leads under term %d", store.ErrNotLeader, seen.Name, seen.Term)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.renew:
			return errRenew
		case <-changed:
		case <-tick.C:
			now, err := l.check(ctx, confirmed)
			switch {
			case err == nil && now != t:
				return fmt.Errorf("%w: %q leads under term %d", store.ErrNotLeader, now.Name, now.Term)
			case err == nil:
				confirmed = time.Now()
			case time.Since(confirmed) > l.c.Patience:
				return fmt.Errorf("the store has not confirmed the term for %s: %w", l.c.Patience, err)
			}
		}
	}
}

// check asks the store for the term, for no longer than patience allows.
func (l *Leadership) check(ctx context.Context, confirmed time.Time) (store.Term, error) {
	ctx, cancel := context.WithDeadline(ctx, confirmed.Add(l.c.Patience+l.c.CheckInterval))
	defer cancel()
	return l.c.Store.CurrentTerm(ctx)
}

func (l *Leadership) set(t store.Term, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.held = t, held
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
