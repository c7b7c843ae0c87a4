package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
)

const (
	// locateTimeout bounds how long a server with data waits for the gossip to know
	// a majority of its cluster. Local reads wait as long (store.Config.LocalAfter
	// counts it in), and servers that look for each other try every 1 to 4 s.
	locateTimeout = 4 * time.Second
	// movedPatience is how long a store stays without the others, although the
	// gossip knows where they have moved to, before it is opened anew: most often
	// they have found this server already.
	movedPatience = 3 * time.Second
	movedLook     = time.Second
)

// locate returns the addresses of the stores of living members of this server's
// cluster. noted has the address of each member as it was last. It waits a while
// until it knows a majority, which this server is part of.
func (s *server) locate(ctx context.Context, noted map[string]string) map[string]string {
	g := s.gossip.Load()
	if g == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, locateTimeout)
	defer cancel()
	defer s.phase.set(s.phase.get())
	for {
		changed := g.Changes()
		found := storeAddresses(g.Members(), s.c.name, g.ClusterID(), noted)
		if 1+len(found) > len(noted)/2 {
			return found
		}
		s.phase.set(fmt.Sprintf("this server waits for other members of its cluster: it knows where %d of %d are", len(found), len(noted)-1))
		select {
		case <-changed:
		case <-ctx.Done():
			return found
		}
	}
}

// storeAddresses are the addresses, host:port, of the stores of living members of
// the cluster, by name, for those that are in noted, without self. An address that
// two servers claim, or that stands for all addresses of a machine, is none.
func storeAddresses(members []gossip.Member, self, cluster string, noted map[string]string) map[string]string {
	claims := map[string]int{}
	found := map[string]string{}
	for _, m := range members {
		u, err := url.Parse(m.Meta.PeerURL)
		if err != nil || m.State != gossip.Alive {
			continue
		}
		host, _, err := net.SplitHostPort(u.Host)
		if err != nil || unspecified(host) {
			continue
		}
		claims[u.Host]++
		if _, ok := noted[m.Name]; ok && m.Name != self && cluster != "" && m.Meta.ClusterID == cluster {
			found[m.Name] = u.Host
		}
	}
	for name, address := range found {
		if claims[address] > 1 {
			delete(found, name)
		}
	}
	return found
}

// errMoved says that the store has to be opened anew, because it looks for the
// other members where they are no longer.
var errMoved = errors.New("other members have moved")

// watchMoves ends with errMoved if the store has found nobody since it was opened,
// while the gossip knows that others are elsewhere than where it looks. Where a
// store is in touch with a majority, the leader notes for all where the rest is:
// those that can't be reached can't say so themselves.
func (s *server) watchMoves(ctx context.Context) error {
	g := s.gossip.Load()
	if g == nil {
		return nil
	}
	look := time.NewTicker(movedLook)
	defer look.Stop()
	var since time.Time
	for {
		parted := s.store.Parted()
		var moved map[string]string
		if parted || s.leading.Load() != nil {
			moved = s.moved(ctx, g)
		}
		switch {
		case len(moved) == 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) <= movedPatience:
		case parted:
			s.log.Info("other members are not where the store looks for them; it is opened anew", "members", strings.Join(slices.Sorted(maps.Keys(moved)), ", "))
			return errMoved
		default:
			for name, address := range moved {
				if err := s.store.Readdress(ctx, name, address); err != nil && ctx.Err() == nil {
					s.log.Warn("could not note where another member has moved; trying again", "member", name, "to", address, "error", err)
				}
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// moved has the addresses of the members that are elsewhere than where the store
// looks for them, by name.
func (s *server) moved(ctx context.Context, g *gossip.Gossip) map[string]string {
	members, err := s.store.Members(ctx)
	if err != nil {
		return nil
	}
	noted := map[string]string{}
	for _, m := range members {
		noted[m.Name] = m.Address
	}
	moved := storeAddresses(g.Members(), s.c.name, g.ClusterID(), noted)
	maps.DeleteFunc(moved, func(name, address string) bool { return address == noted[name] })
	return moved
}

// reopen opens the store anew, on what is stored here. Reads go on meanwhile.
func (s *server) reopen(ctx context.Context) error {
	st := s.opened.Swap(nil)
	s.phase.set("the store is being opened anew: other members have moved")
	if err := st.Close(); err != nil {
		return fmt.Errorf("open the store anew, because other members have moved: %w", err)
	}
	return s.open(ctx, store.Cluster{})
}
