package gossip

import (
	"context"
	"time"
)

// Candidate names the server that should lead, as far as members show; empty if
// none should. leader is the one that the store records.
//
// Only live members of the cluster count, and they must be more than half of its
// size. The recorded leader stays while it is one of them: a server that comes
// back takes nothing away. Otherwise it is the lowest name.
func Candidate(members []Member, cluster string, size int, leader string) string {
	var lowest string
	n := 0
	for _, m := range members {
		if m.State != Alive || m.Meta.ClusterID == "" || m.Meta.ClusterID != cluster {
			continue
		}
		n++
		if m.Name == leader {
			lowest = leader
		} else if lowest != leader && m.Name < lowest || lowest == "" {
			lowest = m.Name
		}
	}
	if 2*n <= size {
		return ""
	}
	return lowest
}

// Stand waits until this server is the candidate. leader is the recorded leader
// and a channel that is closed when another one is recorded; size is the number
// of servers in the cluster.
func (g *Gossip) Stand(ctx context.Context, leader func() (name string, changed <-chan struct{}), size func() int) error {
	// The size may change without notice; it seldom does.
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		members, changed := g.view.members()
		name, other := leader()
		if Candidate(members, g.ClusterID(), size(), name) == g.c.Name {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.closing.Done():
			return ErrClosed
		case <-changed:
		case <-other:
		case <-look.C:
		}
	}
}
