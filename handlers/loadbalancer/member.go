package loadbalancer

import (
	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"net/netip"
)

// member are the rules of one member: the way back, and for a tunnel network the
// way there.
func (s *setting) member(db state.Snapshot, ip netip.Addr) (set flow.Set, waiting []handlers.Waiting) {
	if !ip.Is4() {
		return flow.Set{}, nil
	}
	p := portOf(db, s.lb.NetworkID, ip)
	if p == nil {
		return flow.Set{}, []handlers.Waiting{handlers.Waitf("port with address %s in network %s", ip, s.lb.NetworkID)}
	}
	served, waiting := s.atMember(db, p)
	for _, x := range served {
		set.Rules = append(set.Rules, s.upstream(p, x))
	}
	if !s.network.Type.IsTunnel() {
		return set, waiting
	}
	r, missing := s.toWorker(db, p)
	if missing != "" {
		return set, append(waiting, missing)
	}
	set.Rules = append(set.Rules, r)
	return set, waiting
}

// upstream is Lb-U: what a member sends from a served port leaves with the VIP.
func (s *setting) upstream(p *model.Port, x service) flow.Rule {
	m := flow.Match{EthType: flow.EthTypeIPv4, EthSrc: p.MAC, IPProto: x.protocol, IPSrc: flow.Host(p.IP), TPSrc: x.ports}
	var actions []flow.Action
	if s.tag != 0 {
		m.VLAN = flow.VLANID(s.tag)
		actions = append(actions, flow.PopVLAN{})
	}
	return s.entry(flow.PriorityLB, m, append(actions,
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: s.router.MAC},
		flow.SetIP{Field: flow.FieldIPSrc, IP: s.lb.VIP},
	)...)
}

// toWorker is Lb-T: what the group sends to a member of a tunnel network goes
// through the tunnel to the member's worker.
func (s *setting) toWorker(db state.Snapshot, p *model.Port) (flow.Rule, handlers.Waiting) {
	return handlers.ToWorker(db, s.gateway, s.network, p, flow.PriorityLBTunnel)
}
