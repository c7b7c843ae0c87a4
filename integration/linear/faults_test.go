package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kvnet/integration/cluster"
)

// trouble does things to the servers, one after the other.
type trouble struct {
	*cluster.Cluster
	random  *rand.Rand
	history *History

	spans []span
	// victims is how often whom: the leader, the store's leader, neither.
	victims map[string]int
}

// fault is something that happens to servers and ends again: all run, hear each
// other and are ready when it returns. One that is cut short by the context is left
// to mend.
type fault struct {
	name string
	// weight is how often it is chosen. Without a majority nothing can be written,
	// so what takes it away is rare.
	weight int
	happen func(t *trouble, ctx context.Context) error
}

var faults = []fault{
	{"kill -9", 4, func(t *trouble, ctx context.Context) error { return t.kill(ctx, t.some(ctx, 1)) }},
	{"kill -9 of two", 1, func(t *trouble, ctx context.Context) error { return t.kill(ctx, t.some(ctx, 2)) }},
	{"kill -9 of all", 1, func(t *trouble, ctx context.Context) error { return t.kill(ctx, t.some(ctx, 3)) }},
	{"pause", 4, func(t *trouble, ctx context.Context) error { return t.stop(ctx, t.some(ctx, 1)) }},
	{"pause of two", 1, func(t *trouble, ctx context.Context) error { return t.stop(ctx, t.some(ctx, 2)) }},
	{"one cut off (2|1)", 4, func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { return t.Isolate(ctx, t.some(ctx, 1)[0], cluster.Everything) })
	}},
	{"one is not heard", 2, func(t *trouble, ctx context.Context) error { return t.cutOneWay(ctx, false) }},
	{"one hears nobody", 2, func(t *trouble, ctx context.Context) error { return t.cutOneWay(ctx, true) }},
	{"one doesn't hear another", 1, func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error {
			two := t.shuffle(t.some(ctx, 2))
			return t.CutOneWay(ctx, two[0], two[1], cluster.Everything)
		})
	}},
	{"two cut from each other", 1, func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { two := t.some(ctx, 2); return t.Cut(ctx, two[0], two[1], cluster.Everything) })
	}},
	{"lost packets", 1, func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { return t.Lose(ctx, t.some(ctx, 1)[0], 20) })
	}},
	{"kill -9 beside a cut", 1, func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error {
			two := t.some(ctx, 2)
			return errors.Join(t.Isolate(ctx, two[0], cluster.Everything), two[1].Kill(), two[1].Launch())
		})
	}},
}

// run injects faults until the context ends, and mends all.
func (t *trouble) run(ctx context.Context) error {
	var bag []fault
	for _, f := range faults {
		for range f.weight {
			bag = append(bag, f)
		}
	}
	for t.rest(ctx, 500*time.Millisecond, 3*time.Second); ctx.Err() == nil; t.rest(ctx, 500*time.Millisecond, 3*time.Second) {
		f := bag[t.random.IntN(len(bag))]
		s := span{name: f.name, from: t.history.Now()}
		err := f.happen(t, ctx)
		s.to = t.history.Now()
		t.spans = append(t.spans, s)
		if err != nil && ctx.Err() == nil {
			return errors.Join(fmt.Errorf("%s: %w", f.name, err), t.mend(ctx))
		}
	}
	return t.mend(ctx)
}

// mend ends all faults and waits until all servers are ready.
func (t *trouble) mend(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // WaitReady has a deadline of its own
	errs := []error{t.Heal(ctx)}
	for _, m := range t.Members {
		if !m.Running() {
			errs = append(errs, m.Launch())
		} else if !m.Serving() {
			errs = append(errs, m.Resume())
		}
	}
	if err := t.ready(ctx); err != nil {
		errs = append(errs, fmt.Errorf("after all faults: %w", err))
	}
	return errors.Join(errs...)
}

// rest lets some time pass.
func (t *trouble) rest(ctx context.Context, from, to time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(from + time.Duration(t.random.Int64N(int64(to-from)))):
	}
}

func (t *trouble) kill(ctx context.Context, members []*cluster.Member) error {
	for _, m := range members {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	t.rest(ctx, 0, 3*time.Second)
	for _, m := range members {
		if err := m.Launch(); err != nil {
			return err
		}
	}
	return t.ready(ctx)
}

func (t *trouble) stop(ctx context.Context, members []*cluster.Member) error {
	for _, m := range members {
		if err := m.Pause(); err != nil {
			return err
		}
	}
	// Some shorter than the time after which another server leads, some longer.
	t.rest(ctx, 100*time.Millisecond, 6*time.Second)
	for _, m := range members {
		if err := m.Resume(); err != nil {
			return err
		}
	}
	return t.ready(ctx)
}

// cut does something that ends with Heal.
func (t *trouble) cut(ctx context.Context, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	t.rest(ctx, time.Second, 8*time.Second)
	if err := t.Heal(ctx); err != nil {
		return err
	}
	return t.ready(ctx)
}

// cutOneWay makes a server deaf or dumb towards all others.
func (t *trouble) cutOneWay(ctx context.Context, deaf bool) error {
	return t.cut(ctx, func() error {
		one := t.some(ctx, 1)[0]
		var errs []error
		for _, other := range t.Members {
			switch {
			case other == one:
			case deaf:
				errs = append(errs, t.CutOneWay(ctx, other, one, cluster.Everything))
			default:
				errs = append(errs, t.CutOneWay(ctx, one, other, cluster.Everything))
			}
		}
		return errors.Join(errs...)
	})
}

func (t *trouble) ready(ctx context.Context) error {
	for _, m := range t.Members {
		if err := m.WaitReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}
