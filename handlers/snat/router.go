package snat

import (
	"net/netip"
	"slices"

	"kvnet/handlers"
	"kvnet/handlers/arp"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// The ports that translated connections leave with (TP_PORT_MINIMUM_NUM and
// TP_PORT_MAXIMUM_NUM of the original).
const (
	natPortMin = 1025
	natPortMax = 65535
)

// routerRules are the rules that all VMs of the router share.
func (s *setting) routerRules(db state.Snapshot) (set flow.Set, waiting []handlers.Waiting) {
	ext := db.Network(s.router.External.NetworkID)
	tag, ok := handlers.Tag(ext)
	set.Rules = append(set.Rules, s.arpResponder(tag))
	if ok {
		up, missing := s.upstream(db, tag)
		set.Rules = append(set.Rules, up...)
		waiting = append(waiting, missing...)
	}
	switch {
	case ext == nil:
		waiting = append(waiting, handlers.Waitf("network %s", s.router.External.NetworkID))
	case !ok:
		waiting = append(waiting, handlers.Waitf("VLAN id of network %s", ext.ID))
	default:
		set.Rules = append(set.Rules, s.downstream(tag))
	}
	drops, missing := s.internalDrops(db)
	set.Rules = append(set.Rules, drops...)
	return set, append(waiting, missing...)
}

// entry is a rule of the first table that packets to the gateway meet.
func (s *setting) entry(priority uint16, m flow.Match, actions ...flow.Action) flow.Rule {
	return flow.Rule{Switch: s.gateway.IntegrationDPID(), Table: flow.TableGwEntry, Priority: priority, Match: m, Actions: actions}
}

// arpResponder is Snat-A: the gateway answers the upstream router's question for
// the SNAT address. The address is announced, with the tag of the external network,
// when the responder comes to a switch. An answer keeps the question's tag.
func (s *setting) arpResponder(tag uint16) flow.Rule {
	patch := flow.NamedPort(s.patch)
	r := s.entry(flow.PriorityARPGateway,
		flow.Match{InPort: patch, EthType: flow.EthTypeARP, ARPOp: flow.ARPRequest, ARPTPA: flow.Host(s.ip)},
		flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst},
		flow.Move{From: flow.FieldARPSHA, To: flow.FieldARPTHA},
		flow.Move{From: flow.FieldARPSPA, To: flow.FieldARPTPA},
		flow.SetUint{Field: flow.FieldARPOp, Value: uint64(flow.ARPReply)},
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: s.mac},
		flow.SetMAC{Field: flow.FieldARPSHA, MAC: s.mac},
		flow.SetIP{Field: flow.FieldARPSPA, IP: s.ip},
		flow.Output{Port: flow.InPort},
	)
	r.Announce = &flow.Announcement{
		Address: s.ip, Scope: s.router.Name, Ports: []flow.Port{patch},
		Frame: string(arp.Tagged(arp.GratuitousFrame(s.mac, s.ip), tag)),
	}
	return r
}

// upstream is Snat-U: whatever VMs send to the router leaves with the SNAT address
// and the tag of the external network. The rules of higher priority take out what
// isn't meant for outside.
//
// A tag can be removed only by a rule that matches it, so each VLAN network of the
// router has a Snat-U of its own, and that of all other networks is for untagged
// packets then.
func (s *setting) upstream(db state.Snapshot, tag uint16) (rules []flow.Rule, waiting []handlers.Waiting) {
	m := flow.Match{EthType: flow.EthTypeIPv4, EthDst: s.router.MAC}
	tags, untagged, waiting := s.internalTags(db)
	for _, id := range tags {
		m.VLAN = flow.VLANID(id)
		rules = append(rules, s.entry(flow.PriorityStatefulSNAT, m, append([]flow.Action{flow.PopVLAN{}}, s.leave(tag)...)...))
		m.VLAN = flow.NoVLAN
	}
	if untagged {
		rules = append(rules, s.entry(flow.PriorityStatefulSNAT, m, s.leave(tag)...))
	}
	return rules, waiting
}

// leave takes an untagged packet of a VM to the outside.
func (s *setting) leave(tag uint16) []flow.Action {
	actions := []flow.Action{
		flow.CT{Commit: true, Zone: s.zone, NAT: flow.NAT{
			Kind: flow.NATSource, IPMin: s.ip, IPMax: s.ip, PortMin: natPortMin, PortMax: natPortMax,
		}},
		flow.SetMAC{Field: flow.FieldEthDst, MAC: s.peerMAC},
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: s.mac},
	}
	actions = append(actions, handlers.PushTag(tag)...)
	return append(actions, flow.Output{Port: flow.NamedPort(s.patch)})
}

// internalTags are the VLAN ids of the router's internal networks. untagged tells
// whether there may be untagged packets too: unless all networks are known to be
// VLAN networks, there may.
func (s *setting) internalTags(db state.Snapshot) (tags []uint16, untagged bool, waiting []handlers.Waiting) {
	vlans := 0
	for _, id := range s.router.Internal {
		n := db.Network(id)
		if n == nil || n.Type != model.NetworkVLAN {
			continue
		}
		vlans++
		if tag, ok := handlers.VLANID(n); !ok {
			waiting = append(waiting, handlers.Waitf("VLAN id of network %s", n.ID))
		} else if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags, vlans == 0 || vlans < len(s.router.Internal), waiting
}

// downstream is Snat-D: what comes for the SNAT address gets its VM's address
// back and goes on in the next table, without the tag of the external network.
func (s *setting) downstream(tag uint16) flow.Rule {
	m := flow.Match{EthType: flow.EthTypeIPv4, IPDst: flow.Host(s.ip)}
	var actions []flow.Action
	if tag != 0 {
		m.VLAN = flow.VLANID(tag)
		actions = append(actions, flow.PopVLAN{})
	}
	actions = append(actions,
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: s.router.MAC},
		flow.CT{Zone: s.zone, Table: flow.TableGwDrop, NAT: flow.NAT{Kind: flow.NATKnown}},
	)
	return s.entry(flow.PriorityStatefulSNAT, m, actions...)
}

// internalDrops keep packets for addresses behind the router from leaving with
// the SNAT address (row S-5 of docs/deviations.md): those of its internal
// networks, and those of the networks' balancers that lie outside of them.
func (s *setting) internalDrops(db state.Snapshot) (rules []flow.Rule, waiting []handlers.Waiting) {
	var inside []netip.Prefix
	done := map[netip.Prefix]bool{}
	drop := func(p netip.Prefix) {
		if !done[p] {
			done[p] = true
			m := flow.Match{EthType: flow.EthTypeIPv4, EthDst: s.router.MAC, IPDst: p}
			rules = append(rules, s.entry(flow.PriorityInternalDrop, m))
		}
	}
	for _, id := range s.router.Internal {
		n := db.Network(id)
		if n == nil {
			waiting = append(waiting, handlers.Waitf("network %s", id))
			continue
		}
		if p := n.Prefix(); p.IsValid() && p.Addr().Is4() && p.Bits() > 0 {
			inside = append(inside, p)
			drop(p)
		}
	}
	for _, id := range s.router.Internal {
		for lb := range db.LoadBalancersByNetwork(id) {
			if lb.VIP.Is4() && !within(inside, lb.VIP) {
				drop(flow.Host(lb.VIP))
			}
		}
	}
	return rules, waiting
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
