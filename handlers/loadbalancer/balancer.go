package loadbalancer

import (
	"net/netip"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// balancer is the group of a balancer and the ways to it.
func (s *setting) balancer(db state.Snapshot) (set flow.Set, waiting []handlers.Waiting) {
	_, others := services(s.lb)
	for _, p := range others {
		waiting = append(waiting, handlers.Waitf("protocol TCP, UDP or ICMP in a rule of balancer %s instead of %q", s.lb.Name, p))
	}
	served, lost := s.atVIP(db)
	waiting = append(waiting, lost...)
	set.Groups = []flow.Group{s.members(db)}
	for _, x := range served {
		set.Rules = append(set.Rules, s.downstream(x))
	}
	set.Rules = append(set.Rules, s.arrivals(db,
		flow.Match{EthType: flow.EthTypeIPv4, EthDst: s.router.MAC, IPDst: flow.Host(s.lb.VIP)})...)
	if r, ok := s.vipResponder(); ok {
		set.Rules = append(set.Rules, r)
	}
	return set, waiting
}

// members is Lb-G with Lb-B: a select group with a bucket for each member that has
// a port, in the order of their addresses.
func (s *setting) members(db state.Snapshot) flow.Group {
	g := flow.Group{Switch: s.gateway.IntegrationDPID(), ID: s.group, Type: flow.GroupSelect}
	out := flow.Output{Port: flow.Normal}
	if s.network.Type.IsTunnel() {
		// NORMAL never learns where members are, so it would flood (row L-21).
		out.Port = flow.NamedPort(flow.PortIntToTun)
	}
	for _, ip := range s.lb.Members {
		if p := portOf(db, s.lb.NetworkID, ip); p != nil {
			g.Buckets = append(g.Buckets, flow.Bucket{Weight: 1, Actions: []flow.Action{
				flow.SetMAC{Field: flow.FieldEthDst, MAC: p.MAC},
				flow.SetIP{Field: flow.FieldIPDst, IP: ip},
				out,
			}})
		}
	}
	return g
}

// portOf is the port of a member: of those of the network with its address, the
// first by MAC. It is nil if there is none yet.
func portOf(db state.Snapshot, network string, ip netip.Addr) *model.Port {
	if !ip.Is4() {
		return nil
	}
	var first *model.Port
	for p := range db.PortsByAddress(network, ip) {
		if first == nil || p.Key() < first.Key() {
			first = p
		}
	}
	return first
}

// downstream is Lb-D: what is for the VIP goes to the group. Members of a VLAN get
// their packets with its tag (row S-3).
func (s *setting) downstream(x service) flow.Rule {
	r := flow.Rule{
		Switch: s.gateway.IntegrationDPID(), Table: flow.TableGwDrop, Priority: flow.PriorityLB,
		Match:   flow.Match{EthType: flow.EthTypeIPv4, IPProto: x.protocol, IPDst: flow.Host(s.lb.VIP), TPDst: x.ports},
		Actions: []flow.Action{flow.SetMAC{Field: flow.FieldEthSrc, MAC: s.router.MAC}},
	}
	if s.mark != 0 {
		r.Priority, r.Match.Metadata = flow.PriorityLBShared, flow.Masked64{Value: s.mark, Mask: ^uint64(0)}
	}
	r.Actions = append(r.Actions, handlers.PushTag(s.tag)...)
	r.Actions = append(r.Actions, flow.ToGroup{ID: s.group})
	return r
}

// vipResponder answers for the VIP with the router's MAC in the balancer's network
// (row L-2 of docs/deviations.md). Questions from tunnel networks come without a
// sign of their network, so of equal VIPs only the first one's is answered there.
func (s *setting) vipResponder() (r flow.Rule, ok bool) {
	m, ok := s.comesFrom()
	if !ok {
		return flow.Rule{}, false
	}
	m.EthType, m.ARPOp, m.ARPTPA = flow.EthTypeARP, flow.ARPRequest, flow.Host(s.lb.VIP)
	return responder(s.gateway, m, s.router.MAC, s.lb.VIP), true
}

// comesFrom matches the packets of the balancer's network on the gateway.
func (s *setting) comesFrom() (m flow.Match, ok bool) {
	switch {
	case s.network.Type.IsTunnel():
		m.InPort = flow.NamedPort(flow.PortIntToTun)
		return m, s.mark == 0
	case s.tag != 0:
		m.VLAN = flow.VLANID(s.tag)
		return m, true
	}
	m.VLAN = flow.NoVLAN
	for _, p := range s.gateway.PhysIntfs {
		if p.Network == s.network.ID || p.Network == s.network.Name {
			m.InPort = flow.NamedPort(model.PatchPort(p.Network))
			break
		}
	}
	return m, true
}

// responder answers the ARP requests that m matches: ip is at mac.
func responder(gateway *model.Node, m flow.Match, mac model.MAC, ip netip.Addr) flow.Rule {
	return flow.Rule{
		Switch: gateway.IntegrationDPID(), Table: flow.TableGwEntry, Priority: flow.PriorityARPGateway, Match: m,
		Actions: []flow.Action{
			flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst},
			flow.Move{From: flow.FieldARPSHA, To: flow.FieldARPTHA},
			flow.Move{From: flow.FieldARPSPA, To: flow.FieldARPTPA},
			flow.SetUint{Field: flow.FieldARPOp, Value: uint64(flow.ARPReply)},
			flow.SetMAC{Field: flow.FieldEthSrc, MAC: mac},
			flow.SetMAC{Field: flow.FieldARPSHA, MAC: mac},
			flow.SetIP{Field: flow.FieldARPSPA, IP: ip},
			flow.Output{Port: flow.InPort},
		},
	}
}
