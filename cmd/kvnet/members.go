package main

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
	"kvnet/northbound/rest"
)

// members tells REST who is in the cluster: the members of the store, and the
// servers that the gossip knows.
type members struct{ s *server }

// seen is a member with when it got its state.
type seen struct {
	rest.Member
	since  time.Time
	quorum bool
	store  string // where its store is, if the gossip has not met it
}

func (m members) Members() []rest.Member {
	var out []rest.Member
	for _, x := range m.all() {
		out = append(out, x.Member)
	}
	return out
}

// all lists the servers, sorted by name.
func (m members) all() []seen {
	s := m.s
	own := s.status()
	byName := map[string]seen{s.c.name: {since: s.started, quorum: own.Quorum, Member: rest.Member{
		Name: s.c.name, Address: s.c.gossipAdvertise(), State: "alive", Leader: own.Leading, Voter: !own.Learner,
		Term: &own.Term, Version: version, Lag: &own.Lag, Switches: &own.Switches,
	}}}
	st := s.opened.Load()
	embedded := st != nil && len(s.c.storeEndpoints) == 0
	votes := map[string]bool{}
	for _, x := range s.peers.members() {
		votes[x.Name] = !x.Learner
		if _, ok := byName[x.Name]; !ok && x.Name != "" {
			byName[x.Name] = seen{since: s.started, store: x.Address, Member: rest.Member{Name: x.Name, State: "failed", Voter: !x.Learner}}
		}
	}
	g := s.gossip.Load()
	if g == nil {
		return []seen{byName[s.c.name]}
	}
	var recorded store.Term
	if st != nil {
		recorded, _ = st.Leader()
	}
	for _, x := range g.Members() {
		if x.Name == s.c.name {
			self := byName[x.Name]
			self.Address = x.Address
			byName[x.Name] = self
			continue
		}
		said := s.peers.get(x.Name)
		v := seen{since: x.Since, quorum: said.Quorum, Member: rest.Member{
			Name: x.Name, Address: x.Address, State: x.State.String(), Voter: votes[x.Name] || st != nil && !embedded && x.Meta.ClusterID != "", Version: x.Meta.Version,
		}}
		if x.State == gossip.Alive && !said.at.IsZero() {
			v.Term, v.Lag, v.Switches = &said.Term, &said.Lag, &said.Switches
		}
		// Who leads is told at once by the store; that it doesn't lead, by itself.
		if x.State == gossip.Alive && x.Name == recorded.Name {
			v.Leader = said.Leading || !said.fresh() || said.Term < recorded.Term
			if v.Term == nil || *v.Term < recorded.Term {
				v.Term = &recorded.Term
			}
		}
		byName[x.Name] = v
	}
	var out []seen
	for _, v := range byName {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b seen) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Cluster lists the members in ONOS's form: READY serves, ACTIVE is there but
// can't write, INACTIVE is not there.
func (i inspector) Cluster() []rest.MemberView {
	var out []rest.MemberView
	for _, m := range members(i).all() {
		host, port, _ := net.SplitHostPort(cmp.Or(m.Address, m.store))
		n, _ := strconv.Atoi(port)
		state := "READY"
		switch {
		case m.State != "alive":
			state = "INACTIVE"
		case !m.Voter || !m.quorum:
			state = "ACTIVE"
		}
		out = append(out, rest.MemberView{ID: m.Name, IP: host, TCPPort: n, Status: state, LastUpdate: m.since})
	}
	return out
}
