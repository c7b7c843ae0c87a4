package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvnet/cluster/store"
	"kvnet/model/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// terms is a store of terms in memory.
type terms struct {
	mu      sync.Mutex
	t       store.Term
	changed chan struct{}
	err     error // of every call
	refused int   // calls of CurrentTerm that got err
}

func newTerms() *terms { return &terms{changed: make(chan struct{})} }

func (s *terms) TakeTerm(_ context.Context, name, instance string) (store.Term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return store.Term{}, s.err
	}
	s.t = store.Term{Name: name, Instance: instance, Epoch: max(s.t.Epoch, 1), Term: s.t.Term + 1}
	close(s.changed)
	s.changed = make(chan struct{})
	return s.t, nil
}

func (s *terms) TakeTermAfter(ctx context.Context, name, instance string, seen store.Term) (store.Term, error) {
	s.mu.Lock()
	stale := s.t != seen && s.t.Instance != instance
	s.mu.Unlock()
	if stale {
		return store.Term{}, store.ErrConflict
	}
	return s.TakeTerm(ctx, name, instance)
}

func (s *terms) CurrentTerm(context.Context) (store.Term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.refused++
	}
	return s.t, s.err
}

func (s *terms) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *terms) Leader() (store.Term, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t, s.changed
}

func (s *terms) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// event is a call of OnElected or OnLost.
type event struct {
	elected bool
	term    store.Term
	ctx     context.Context
}

// run starts a Leadership and returns its calls.
func run(t *testing.T, s Terms, change func(*LeadershipConfig)) (*Leadership, <-chan event) {
	t.Helper()
	events := make(chan event, 100)
	c := LeadershipConfig{
		Store: s, Name: "a", CheckInterval: 5 * time.Millisecond, Patience: 50 * time.Millisecond,
		Logger:    slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnElected: func(ctx context.Context, x store.Term) { events <- event{true, x, ctx} },
		OnLost:    func(x store.Term) { events <- event{false, x, nil} },
	}
	if change != nil {
		change(&c)
	}
	l, err := NewLeadership(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
		if _, ok := l.Term(); ok {
			t.Error("still leads after Run has ended")
		}
	})
	return l, events
}

func next(t *testing.T, events <-chan event, elected bool) event {
	t.Helper()
	select {
	case e := <-events:
		if e.elected != elected {
			t.Fatalf("event %+v, want elected=%v", e, elected)
		}
		return e
	case <-time.After(10 * time.Second):
		t.Fatalf("nothing happened, want elected=%v", elected)
		return event{}
	}
}

func TestASingleServerLeads(t *testing.T) {
	l, events := run(t, newTerms(), nil)
	e := next(t, events, true)
	if got, ok := l.Term(); !ok || got != e.term || got.Name != "a" || got.Instance != l.Instance() {
		t.Fatalf("term %+v, %v; elected with %+v", got, ok, e.term)
	}
}

func TestEachLifeHasAnotherInstanceAndALaterTerm(t *testing.T) {
	s := newTerms()
	var seen []store.Term
	for range 3 {
		t.Run("life", func(t *testing.T) {
			_, events := run(t, s, nil)
			seen = append(seen, next(t, events, true).term)
		})
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Instance == seen[i-1].Instance || seen[i].Generation() <= seen[i-1].Generation() {
			t.Fatalf("terms %+v", seen)
		}
	}
}

func TestAnotherLeadersTermEndsOurs(t *testing.T) {
	s := newTerms()
	_, events := run(t, s, func(c *LeadershipConfig) { c.CheckInterval = time.Hour })
	first := next(t, events, true)
	other, err := s.TakeTerm(context.Background(), "b", "x")
	if err != nil {
		t.Fatal(err)
	}
	if lost := next(t, events, false); lost.term != first.term {
		t.Fatalf("lost %+v, held %+v", lost.term, first.term)
	}
	if first.ctx.Err() == nil || !errors.Is(context.Cause(first.ctx), store.ErrNotLeader) {
		t.Fatalf("the context of the lost term: %v", context.Cause(first.ctx))
	}
	if again := next(t, events, true); again.term.Generation() <= other.Generation() {
		t.Fatalf("term %+v after %+v", again.term, other)
	}
}

func TestATermThatIsNotConfirmedIsLost(t *testing.T) {
	s := newTerms()
	_, events := run(t, s, nil)
	next(t, events, true)
	s.fail(store.ErrUnavailable)
	next(t, events, false)
	s.fail(nil)
	next(t, events, true)
}

func TestAShortSilenceOfTheStoreIsNoLoss(t *testing.T) {
	s := newTerms()
	_, events := run(t, s, func(c *LeadershipConfig) { c.Patience = time.Hour })
	e := next(t, events, true)
	s.fail(store.ErrUnavailable)
	for end := time.Now().Add(10 * time.Second); s.refusals() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the term was not checked")
		}
	}
	s.fail(nil)
	other, err := s.TakeTerm(context.Background(), "b", "x")
	if err != nil {
		t.Fatal(err)
	}
	if lost := next(t, events, false); lost.term != e.term || other.Term != e.term.Term+1 {
		t.Fatalf("lost %+v, other %+v", lost.term, other)
	}
}

func TestRenewTakesALaterTermAtOnce(t *testing.T) {
	l, events := run(t, newTerms(), func(c *LeadershipConfig) { c.CheckInterval = time.Hour })
	first := next(t, events, true)
	l.Renew()
	next(t, events, false)
	if second := next(t, events, true); second.term.Generation() <= first.term.Generation() {
		t.Fatalf("term %+v after %+v", second.term, first.term)
	}
}

func TestNobodyLeadsBeforeItStands(t *testing.T) {
	stand := make(chan struct{})
	l, events := run(t, newTerms(), func(c *LeadershipConfig) {
		c.Stand = func(ctx context.Context) error {
			select {
			case <-stand:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	if _, ok := l.Term(); ok || len(events) != 0 {
		t.Fatal("leads without standing")
	}
	close(stand)
	next(t, events, true)
}

func TestLeadershipOnTheRealStore(t *testing.T) {
	db := state.New()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := store.Open(ctx, store.Config{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", MinFree: -1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	_, events := run(t, s, nil)
	first := next(t, events, true)
	other, err := s.TakeTerm(ctx, "b", "x")
	if err != nil {
		t.Fatal(err)
	}
	next(t, events, false)
	again := next(t, events, true)
	if first.term.Generation() >= other.Generation() || other.Generation() >= again.term.Generation() {
		t.Fatalf("generations %x, %x, %x", first.term.Generation(), other.Generation(), again.term.Generation())
	}
}
