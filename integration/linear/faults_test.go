package linear

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kvnet/integration/cluster"
)

// trouble does things to the servers, one after the other.
type trouble struct {
	*cluster.Cluster
	random *rand.Rand
	counts map[string]int
}

// fault is something that happens to servers and ends again: all run and hear each
// other when it returns. One that is cut short by the context is left to mend.
type fault struct {
	name   string
	happen func(t *trouble, ctx context.Context) error
}

var faults = []fault{
	{"kill -9", func(t *trouble, ctx context.Context) error { return t.kill(ctx, t.some(1)) }},
	{"kill -9 of two", func(t *trouble, ctx context.Context) error { return t.kill(ctx, t.some(2)) }},
	{"kill -9 of all", func(t *trouble, ctx context.Context) error { return t.kill(ctx, t.some(3)) }},
	{"pause", func(t *trouble, ctx context.Context) error { return t.stop(ctx, t.some(1)) }},
	{"pause of two", func(t *trouble, ctx context.Context) error { return t.stop(ctx, t.some(2)) }},
	{"one cut off", func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { return t.Isolate(ctx, t.some(1)[0], cluster.Everything) })
	}},
	{"two cut from each other", func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { two := t.some(2); return t.Cut(ctx, two[0], two[1], cluster.Everything) })
	}},
	{"one doesn't hear another", func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { two := t.some(2); return t.CutOneWay(ctx, two[0], two[1], cluster.Everything) })
	}},
	{"lost packets", func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error { return t.Lose(ctx, t.some(1)[0], 20) })
	}},
	{"kill -9 beside a cut", func(t *trouble, ctx context.Context) error {
		return t.cut(ctx, func() error {
			two := t.some(2)
			return errors.Join(t.Isolate(ctx, two[0], cluster.Everything), two[1].Kill(), two[1].Launch())
		})
	}},
}

// run injects faults until the context ends, and mends all.
func (t *trouble) run(ctx context.Context) error {
	for ctx.Err() == nil {
		f := faults[t.random.IntN(len(faults))]
		t.counts[f.name]++
		if err := f.happen(t, ctx); err != nil && ctx.Err() == nil {
			return errors.Join(fmt.Errorf("%s: %w", f.name, err), t.mend(ctx))
		}
		t.rest(ctx, 500*time.Millisecond, 3*time.Second)
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
	for _, m := range t.Members {
		if err := m.WaitReady(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s after all faults: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// some are n servers by chance.
func (t *trouble) some(n int) []*cluster.Member {
	all := slices.Clone(t.Members)
	t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
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
	t.rest(ctx, 100*time.Millisecond, 8*time.Second)
	for _, m := range members {
		if err := m.Resume(); err != nil {
			return err
		}
	}
	return nil
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

func (t *trouble) ready(ctx context.Context) error {
	for _, m := range t.Members {
		if err := m.WaitReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// String tells how often which fault was injected.
func (t *trouble) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		out = append(out, fmt.Sprintf("%d × %s", t.counts[name], name))
	}
	return strings.Join(out, ", ")
}
