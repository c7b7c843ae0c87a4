package main

import (
	"fmt"
	"slices"
	"strings"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
)

const openingStore = "the store is being opened"

// notReady says why this server can't serve clients yet, with what keeps others from
// being in touch with it.
func (s *server) notReady() string {
	why := s.waiting()
	g := s.gossip.Load()
	if g == nil {
		return why
	}
	if s.c.clustered() && s.phase.get() == openingStore && s.opened.Load() == nil {
		why += "; that needs a majority of the cluster's servers"
	}
	if t := g.Trouble(); t != "" {
		why += "; " + t
	}
	return why
}

// trouble says why the store doesn't answer, as far as that is known.
func (s *server) trouble() string {
	st := s.opened.Load()
	if st == nil {
		return s.notReady()
	}
	h, ok := st.Health()
	if !ok || h.Quorum {
		return ""
	}
	var members []gossip.Member
	if g := s.gossip.Load(); g != nil {
		members = g.Members()
	}
	return noMajority(s.c.name, s.peers.members(), members)
}

// noMajority says which voters don't answer this one.
func noMajority(self string, voters []store.Member, members []gossip.Member) string {
	state := map[string]string{}
	for _, m := range members {
		state[m.Name] = m.State.String()
	}
	var missing []string
	for _, v := range voters {
		switch at, known := state[v.Name]; {
		case v.Learner || v.Name == self || at == gossip.Alive.String():
		case known:
			missing = append(missing, v.Name+" ("+at+")")
		default:
			missing = append(missing, v.Name+" (not met)")
		}
	}
	if len(missing) == 0 {
		return "the majority of the cluster's stores is not in touch with this one"
	}
	slices.Sort(missing)
	return fmt.Sprintf("the majority of the cluster is missing: %s", strings.Join(missing, ", "))
}
