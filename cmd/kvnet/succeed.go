package main

import (
	"context"
	"slices"

	"kvnet/cluster/gossip"
)

// replaceStoreLeader has the store replace its own (etcd's) leader as soon as the
// gossip knows that the server on which that is has failed.
func (s *server) replaceStoreLeader(ctx context.Context) error {
	g := s.gossip.Load()
	if g == nil {
		return nil
	}
	for {
		changed := g.Changes()
		if h, ok := s.store.Health(); ok && h.Leader != "" {
			leader, _ := s.store.Leader()
			if turn, ok := successionTurn(g.Members(), g.ClusterID(), s.c.name, h.Leader, leader.Name, h.Voters); ok {
				if err := s.store.Succeed(ctx, h.Leader, turn); err != nil && ctx.Err() == nil {
					s.log.Warn("could not stand for the store's leader; the store will elect one", "dead", h.Leader, "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// successionTurn tells whether server own should stand for the store's leader
// because the member dead has failed, and how many others do before. The last by
// name is the first, and kvnet's leader the last, as the store's is kept away from
// it. Without most of the voters nobody stands.
func successionTurn(members []gossip.Member, cluster, own, dead, leader string, voters int) (turn int, ok bool) {
	var living []string
	failed := false
	for _, m := range members {
		switch {
		case m.Name == dead:
			failed = m.State == gossip.Failed
		case m.State == gossip.Alive && m.Meta.ClusterID == cluster:
			living = append(living, m.Name)
		}
	}
	if !failed || 2*len(living) <= voters {
		return 0, false
	}
	slices.Sort(living)
	slices.Reverse(living)
	if i := slices.Index(living, leader); i >= 0 {
		living = append(slices.Delete(living, i, i+1), leader)
	}
	turn = slices.Index(living, own)
	return turn, turn >= 0
}
