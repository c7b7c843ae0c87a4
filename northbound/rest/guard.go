package rest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The rates of guesses. An address that tries passwords is soon answered without
// a look at them: 10 for one name at once and then 3 a second, and twice that for
// all names together.
const (
	guardBurst = 10
	guardRate  = 3
	guardNames = 2 // names' worth of guesses that an address has
)

// guards bound what the clients of one address can make the server compute. They
// treat names that exist and names that don't alike, so that being slowed down
// doesn't tell which is which.
type guards struct {
	mu    sync.Mutex
	from  map[credentialKey]*rate.Limiter // by address
	names map[credentialKey]*rate.Limiter // by address and name
	// turns has a channel for each address of which a password is being looked
	// at. Whoever holds its only element may go on.
	turns map[credentialKey]*turn
}

// turn is the place of an address in the queue for a bcrypt hash.
type turn struct {
	free  chan struct{}
	users int // that hold it or wait for it; under guards.mu
}

func newGuards() *guards {
	return &guards{
		from:  map[credentialKey]*rate.Limiter{},
		names: map[credentialKey]*rate.Limiter{},
		turns: map[credentialKey]*turn{},
	}
}

// mayGuess takes a guess from the address and from the name there. Names are
// counted only for an address that may go on, so no address fills the map.
func (g *guards) mayGuess(from, name credentialKey, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return take(g.from, from, guardNames, now) && take(g.names, name, 1, now)
}

func take(m map[credentialKey]*rate.Limiter, key credentialKey, times int, now time.Time) bool {
	l := m[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(times*guardRate), times*guardBurst)
		put(m, key, l)
	}
	return l.AllowN(now, 1)
}

// enter waits until no other password of the address is being looked at. Guesses
// of one address therefore stand in a queue of their own, and only the first of
// them in the queue of all.
func (g *guards) enter(ctx context.Context, from credentialKey) (leave func(), err error) {
	g.mu.Lock()
	t := g.turns[from]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		g.turns[from] = t
	}
	t.users++
	g.mu.Unlock()
	done := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(g.turns, from)
		}
	}
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free; done() }, nil
	case <-ctx.Done():
		done()
		return nil, errBusy
	}
}

// sourceOf is what stands for the client's address: an IPv6 host has the whole
// /64 to choose addresses from, so that counts as one.
func sourceOf(remoteAddr string) string {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		host = remoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
