package main

import (
	"context"
	"time"

	"kvnet/cluster/store"
)

const (
	// reachFor is how long another server must have reached more switches than
	// the leader to get the lead, reachPause the least time between two such
	// changes.
	reachFor   = 10 * time.Second
	reachPause = time.Minute
	reachLook  = time.Second
)

// reach follows which servers reach more switches than the leader.
type reach struct{ since map[string]time.Time }

// better names the server that has reached more switches than own for long
// enough, of several the one that reaches the most; empty: none. switches are the
// numbers of those that could lead.
func (r *reach) better(own int, switches map[string]int, now time.Time) string {
	if r.since == nil {
		r.since = map[string]time.Time{}
	}
	for name := range r.since {
		if n, ok := switches[name]; !ok || n <= own {
			delete(r.since, name)
		}
	}
	var best string
	for name, n := range switches {
		if n <= own {
			continue
		}
		if _, ok := r.since[name]; !ok {
			r.since[name] = now
		}
		if now.Sub(r.since[name]) < reachFor {
			continue
		}
		if best == "" || n > switches[best] || n == switches[best] && name < best {
			best = name
		}
	}
	return best
}

// watchReach gives the lead to a server that reaches more switches than this one,
// if that lasts.
func (s *server) watchReach(ctx context.Context, t store.Term) error {
	var r reach
	tick := time.NewTicker(reachLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switches := map[string]int{}
		for _, name := range s.successors() {
			if said := s.peers.get(name); said.fresh() && said.Quorum && !said.Learner {
				switches[name] = said.Switches
			}
		}
		own := len(s.of.Sessions())
		name := r.better(own, switches, time.Now())
		if name == "" || time.Since(time.Unix(0, s.given.Load())) < reachPause {
			continue
		}
		s.given.Store(time.Now().UnixNano())
		s.log.Warn("another server reaches more switches than this one and gets the lead", "name", name, "its_switches", switches[name], "own", own)
		if err := s.askToTakeOver(ctx, name, takeOverRequest{Generation: t.Generation(), Switches: true}); err != nil && ctx.Err() == nil {
			s.log.Warn("another server could not take the lead", "name", name, "error", err)
		}
	}
}
