package main

import (
	"net"

	"kvnet/northbound/rest"
)

// members tells REST who is in the cluster: this server alone, as long as there is
// no gossip.
type members struct{ s *server }

func (m members) Members() []rest.Member {
	term, _ := m.s.store.Leader()
	return []rest.Member{{
		Name: m.s.c.name, Address: m.s.c.gossipAdvertise(), State: "alive", Leader: m.s.leading.Load() != nil,
		Term: term.Term, Version: version, Lag: m.s.lag.revisions(m.s.db.Snapshot().Revision()),
	}}
}

// gossipAdvertise is the address by which other servers reach this one.
func (c *config) gossipAdvertise() string {
	host, port, _ := net.SplitHostPort(c.gossipListen)
	if c.advertise != "" {
		host = c.advertise
	}
	return net.JoinHostPort(host, port)
}
