package gossip

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"kvnet/internal/pause"
)

const (
	// The pauses between attempts to reach missing members. The view is mended
	// within the longest after a partition ends.
	minRejoin = time.Second
	maxRejoin = 3 * time.Second
	// lookupTime bounds how long a name of a seed may take.
	lookupTime = 2 * time.Second
	// maxTargets bounds the addresses that are tried in one attempt, maxJoins
	// those at a time.
	maxTargets = 64
	maxJoins   = 8
)

// short says whether members lack somebody: fewer are alive than the cluster
// has, than are to found one, or than are known and have not left. If nobody
// says how many there should be, unmet says that seeds have not been met.
func short(members []Member, expect, size int, unmet bool) bool {
	want := max(expect, size)
	known := 0
	for _, m := range members {
		if m.State != Left {
			known++
		}
	}
	return len(alive(members)) < max(want, known) || want == 0 && unmet
}

// targets are the addresses to try: of failed members and of seeds, without
// those that are members already and this server's own.
func targets(self string, members []Member, seeds []string) []string {
	var out []string
	add := func(a string) {
		known := slices.ContainsFunc(out, func(b string) bool { return sameAddress(a, b) }) ||
			slices.ContainsFunc(alive(members), func(m Member) bool { return sameAddress(a, m.Address) })
		if !known && !sameAddress(a, self) && len(out) < maxTargets {
			out = append(out, a)
		}
	}
	for _, m := range members {
		if m.State == Failed {
			add(m.Address)
		}
	}
	for _, a := range seeds {
		add(a)
	}
	return out
}

// sameAddress compares two addresses by their meaning.
func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.Port() == y.Port() && x.Addr().Unmap() == y.Addr().Unmap()
}

// keepJoined reaches for missing members while there are some. Memberlist by
// itself would notice those on the other side of a mended partition late.
func (g *Gossip) keepJoined(ctx context.Context) {
	wait := minRejoin
	unmet := len(g.c.Join)+len(g.seeds) > 0
	var kept []string // in the seed file
	for {
		members, changed := g.view.members()
		if g.c.SeedFile != "" {
			kept = g.keepSeeds(kept, members)
		}
		g.publish()
		g.mu.Lock()
		expect, size := g.own.Expect, g.size
		g.mu.Unlock()
		next := minRejoin // a look at the size, which changes without notice
		if short(members, expect, size, unmet) {
			unmet = g.rejoin(ctx, members)
			// The pauses differ, so that servers don't try in step.
			next = wait + time.Duration(g.id.instance%uint64(wait/4))
			wait = min(wait*3/2, maxRejoin)
		} else {
			wait = minRejoin
		}
		t := time.NewTimer(next)
		select {
		case <-t.C:
		case <-changed:
			wait = minRejoin
			unmet = len(g.c.Join) > 0
			// A view that changes all the time must not make this spin.
			if !pause.For(ctx, minRejoin/10) {
				t.Stop()
				return
			}
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

// rejoin tries all targets once. It returns false if there are none.
func (g *Gossip) rejoin(ctx context.Context, members []Member) (tried bool) {
	seeds, errs := g.resolveAll(ctx, g.c.Join)
	list := targets(g.address, members, append(seeds, g.seeds...))
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		slot = make(chan struct{}, maxJoins)
		done int
	)
	for _, addr := range list {
		slot <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slot }()
			_, err := g.ml.Join([]string{addr})
			if err != nil && ctx.Err() == nil {
				if text, ok := keyTrouble(err); ok {
					g.refuse(&RefusedError{Address: addr, Reason: OtherKey, Text: text})
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done++
			} else {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if len(list)+len(errs) == 0 || ctx.Err() != nil {
		return false
	}
	var err error
	if done == 0 {
		err = errors.Join(errs...)
	}
	g.c.Observer.Rejoined(err)
	if err != nil {
		g.c.Logger.Debug("no missing member was reached", "err", err)
	}
	return true
}
