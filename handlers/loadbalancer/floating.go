package loadbalancer

import (
	"slices"

	"kvnet/handlers"
	"kvnet/handlers/arp"
	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// floating are the rules of a floating IP that is bound to the VIP: all of them,
// or none while something is missing (row L-18 of docs/deviations.md).
func floating(db state.Snapshot, lb *model.LoadBalancer, fip *model.FloatingIP) (flow.Set, []handlers.Waiting) {
	r := db.Router(fip.RouterName)
	if r == nil {
		return flow.Set{}, []handlers.Waiting{handlers.Waitf("router %s", fip.RouterName)}
	}
	if !slices.Contains(r.Internal, lb.NetworkID) {
		return flow.Set{}, nil // an equal VIP behind another router (row L-15)
	}
	s, _ := settingOf(db, lb)
	if s == nil {
		return flow.Set{}, waitForBalancer(lb)
	}
	if s.router.Name != r.Name {
		return flow.Set{}, []handlers.Waiting{handlers.Waitf("router %s to serve balancer %s instead of router %s", r.Name, lb.Name, s.router.Name)}
	}
	o, missing := outsideOf(db, s)
	if first := rival(db, fip); first != nil {
		missing = append(missing, handlers.Waitf("VIP %s to lose floating IP %s (%s), because answers leave with one address", lb.VIP, first.ID, first.FloatingIP))
	}
	if !fip.FloatingIP.Is4() {
		missing = append(missing, handlers.Waitf("IPv4 address of floating IP %s", fip.ID))
	}
	if len(missing) != 0 {
		return flow.Set{}, missing
	}
	rules := s.arrivals(db,
		flow.Match{EthType: flow.EthTypeIPv4, IPDst: flow.Host(fip.FloatingIP)}, // Lb-FD
		flow.SetIP{Field: flow.FieldIPDst, IP: lb.VIP})
	return flow.Set{Rules: append(rules, s.leave(o, fip), s.floatingResponder(o, fip))}, nil
}

// rival is the floating IP of the same router and VIP that comes before fip, if
// it is another address. Answers don't tell which of the two a client has asked (row
// L-23 of docs/deviations.md).
func rival(db state.Snapshot, fip *model.FloatingIP) (first *model.FloatingIP) {
	for o := range db.FloatingIPsByFixed(fip.FixedIP.String()) {
		before := fip
		if first != nil {
			before = first
		}
		if o.ID < before.ID && o.RouterName == fip.RouterName && o.FloatingIP.Is4() && o.FloatingIP != fip.FloatingIP {
			first = o
		}
	}
	return first
}

// outside is how a gateway reaches the upstream router.
type outside struct {
	patch flow.Port
	mac   model.MAC // of the gateway
	peer  model.MAC
	tag   uint16 // 0: none
}

func outsideOf(db state.Snapshot, s *setting) (o outside, missing []handlers.Waiting) {
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, handlers.Waitf(format, args...))
		}
	}
	o.patch, o.mac = flow.NamedPort(s.gateway.ExternalPatchPort()), handlers.ExternalMAC(db, s.gateway)
	need(!o.patch.IsZero(), "gatewayBridgeName of node %s", s.gateway.Hostname)
	if peer := handlers.PeerIP(s.router); !peer.IsValid() {
		need(false, "IPv4 address of the peer router of router %s", s.router.Name)
	} else {
		o.peer = decide.PeerMAC(s.router, db.RouterStatus(s.router.Name))
		need(!o.peer.IsZero(), "MAC of peer router %s", peer)
	}
	if s.router.External == nil || s.router.External.NetworkID == "" {
		return o, missing
	}
	ext := db.Network(s.router.External.NetworkID)
	if need(ext != nil, "network %s", s.router.External.NetworkID); ext != nil {
		var ok bool
		o.tag, ok = handlers.Tag(ext)
		need(ok, "VLAN id of network %s", ext.ID)
	}
	return o, missing
}

// leave is Lb-FU: what comes from the VIP leaves with the floating IP. A router with
// several networks may have clients of the VIP inside, and their answers must not
// leave: there Lb-FU comes after Snat-P, which leads to VMs (row L-22 of
// docs/deviations.md).
func (s *setting) leave(o outside, fip *model.FloatingIP) flow.Rule {
	actions := []flow.Action{
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: o.mac},
		flow.SetIP{Field: flow.FieldIPSrc, IP: fip.FloatingIP},
		flow.SetMAC{Field: flow.FieldEthDst, MAC: o.peer},
	}
	actions = append(actions, handlers.PushTag(o.tag)...)
	priority := flow.PriorityLB
	if len(s.router.Internal) > 1 {
		priority = flow.PriorityLBLeave
	}
	return flow.Rule{
		Switch: s.gateway.IntegrationDPID(), Table: flow.TableGwDrop, Priority: priority,
		Match:   flow.Match{EthType: flow.EthTypeIPv4, EthSrc: s.router.MAC, IPSrc: flow.Host(s.lb.VIP)},
		Actions: append(actions, flow.Output{Port: o.patch}),
	}
}

// floatingResponder is Lb-FA: the gateway answers the upstream router's question
// for the floating IP, and announces it when the responder comes to a switch.
func (s *setting) floatingResponder(o outside, fip *model.FloatingIP) flow.Rule {
	m := flow.Match{InPort: o.patch, EthType: flow.EthTypeARP, ARPOp: flow.ARPRequest, ARPTPA: flow.Host(fip.FloatingIP)}
	r := responder(s.gateway, m, o.mac, fip.FloatingIP)
	frame := arp.Tagged(arp.GratuitousFrame(o.mac, fip.FloatingIP), o.tag)
	r.Announce = &flow.Announcement{Address: fip.FloatingIP, Scope: s.router.Name, Ports: []flow.Port{o.patch}, Frame: string(frame)}
	return r
}
