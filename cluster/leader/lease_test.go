package leader

import (
	"context"
	"errors"
	"testing"
	"time"

	"kvnet/cluster/store"
)

// slowTerms answers each question late, with what was true when it was asked.
type slowTerms struct {
	*terms
	answer func(ctx context.Context) // returns when the answer may come
}

func (s slowTerms) CurrentTerm(ctx context.Context) (store.Term, error) {
	t, err := s.terms.CurrentTerm(ctx)
	s.answer(ctx)
	return t, err
}

func TestALeaderStopsWhileTheStoreIsSilent(t *testing.T) {
	s := slowTerms{newTerms(), func(ctx context.Context) { <-ctx.Done() }}
	_, events := run(t, s, nil)
	e := next(t, events, true)
	next(t, events, false)
	if err := context.Cause(e.ctx); !errors.Is(err, errLease) {
		t.Fatalf("the term ended because of %v", err)
	}
}

func TestALeaseCountsFromTheQuestion(t *testing.T) {
	// Every answer confirms the term, as of so long ago that another server may
	// lead since.
	s := slowTerms{newTerms(), func(context.Context) { time.Sleep(60 * time.Millisecond) }}
	_, events := run(t, s, nil) // with a patience of 50 ms
	next(t, events, true)
	next(t, events, false)
}

func TestNobodyLeadsAfterTheLease(t *testing.T) {
	l, err := NewLeadership(LeadershipConfig{Store: newTerms(), Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	l.set(store.Term{Term: 1}, true, time.Now().Add(time.Minute))
	if _, ok := l.Term(); !ok {
		t.Error("doesn't lead during the lease")
	}
	// As if the process had been stopped: nothing has noticed yet.
	l.set(store.Term{Term: 1}, true, time.Now())
	if _, ok := l.Term(); ok {
		t.Error("leads after the lease")
	}
}

// lateTerms has not heard of the term that is in force.
type lateTerms struct{ *terms }

func (s lateTerms) Leader() (store.Term, <-chan struct{}) {
	t, changed := s.terms.Leader()
	if t.Name == "b" {
		t = store.Term{}
	}
	return t, changed
}

func TestACandidateThatIsLateStandsAgain(t *testing.T) {
	s := newTerms()
	b, err := s.TakeTerm(t.Context(), "b", "x")
	if err != nil {
		t.Fatal(err)
	}
	stands := make(chan struct{}, 100)
	_, events := run(t, lateTerms{s}, func(c *LeadershipConfig) {
		c.Stand = func(ctx context.Context) error {
			select {
			case stands <- struct{}{}:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	for range 3 {
		<-stands
	}
	if now, err := s.CurrentTerm(t.Context()); err != nil || now != b || len(events) != 0 {
		t.Fatalf("term %+v, %v; %d calls", now, err, len(events))
	}
}
