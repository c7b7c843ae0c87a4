package loadbalancer

import (
	"net/netip"
	"strings"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
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
	served, _ := services(s.lb)
	for _, x := range served {
		set.Rules = append(set.Rules, s.upstream(p, x))
	}
	if !s.network.Type.IsTunnel() {
		return set, nil
	}
	r, missing := s.toWorker(db, p)
	if missing != "" {
		return set, []handlers.Waiting{missing}
	}
	set.Rules = append(set.Rules, r)
	return set, nil
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
	segment, hasSegment := s.network.Segment()
	worker := db.NodeByIntegration(p.DeviceID)
	switch {
	case s.gateway.TunnelDPID() == 0:
		return flow.Rule{}, handlers.Waitf("tunnel bridge of node %s", s.gateway.Hostname)
	case !hasSegment:
		return flow.Rule{}, handlers.Waitf("segment id of network %s", s.network.ID)
	case p.DeviceID == "":
		return flow.Rule{}, handlers.Waitf("place of port %s", p.MAC)
	case worker == nil:
		return flow.Rule{}, handlers.Waitf("worker with integration bridge %s", p.DeviceID)
	case !worker.DataIP.Is4():
		return flow.Rule{}, handlers.Waitf("IPv4 data address of node %s", worker.Hostname)
	}
	return flow.Rule{
		Switch: s.gateway.TunnelDPID(), Table: flow.TableTunnelDefault, Priority: flow.PriorityLBTunnel,
		Match: flow.Match{EthType: flow.EthTypeIPv4, EthDst: p.MAC, IPDst: flow.Host(p.IP)},
		Actions: []flow.Action{
			flow.SetUint{Field: flow.FieldTunID, Value: uint64(segment)},
			flow.SetIP{Field: flow.FieldTunDst, IP: worker.DataIP},
			flow.Output{Port: flow.NamedPort(strings.ToLower(string(s.network.Type)))},
		},
	}, ""
}
