package network

import (
	"slices"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

const name = "network"

// Handler computes, for each router and each of its internal provider networks,
// the responders on the router's gateway.
type Handler struct{}

// New makes the handler.
func New() Handler { return Handler{} }

// Name implements handlers.Handler.
func (Handler) Name() string { return name }

func owner(router, network string) flow.Owner { return handlers.OwnerOf(name, router, network) }

// Owners implements handlers.Handler.
func (Handler) Owners(db state.Snapshot) (owners []flow.Owner) {
	for r := range db.Routers() {
		for _, id := range r.Internal {
			owners = append(owners, owner(r.Name, id))
		}
	}
	return owners
}

// Affected implements handlers.Handler.
func (Handler) Affected(db state.Snapshot, c model.Change) []flow.Owner {
	var set handlers.OwnerSet
	attached := func(r *model.Router) {
		if r == nil {
			return
		}
		for _, id := range r.Internal {
			set.Add(owner(r.Name, id))
		}
	}
	switch c.Kind {
	case model.KindRouter:
		for _, r := range model.Versions[*model.Router](c) {
			attached(r)
		}
	case model.KindRouterStatus:
		attached(db.Router(c.Key))
	case model.KindNetwork:
		for r := range db.RoutersByInternal(c.Key) {
			set.Add(owner(r.Name, c.Key))
		}
	case model.KindSwitchPort:
		if !mayLead(c) {
			return nil
		}
		for _, p := range model.Versions[*model.SwitchPort](c) {
			for gw := range db.NodesByBridge(p.DPID) {
				for router := range db.RoutersByGateway(gw.Hostname) {
					attached(db.Router(router))
				}
			}
		}
	case model.KindNode:
		for router := range db.RoutersByGateway(c.Key) {
			attached(db.Router(router))
		}
	}
	return set.List()
}

// Rules implements handlers.Handler.
func (Handler) Rules(db state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	parts, ok := handlers.OwnerParts(name, o)
	if !ok || len(parts) != 2 {
		return flow.Set{}, nil
	}
	r := db.Router(parts[0])
	if r == nil || !slices.Contains(r.Internal, parts[1]) {
		return flow.Set{}, nil
	}
	n := db.Network(parts[1])
	if n == nil {
		return wait("network %s", parts[1])
	}
	if n.Type != model.NetworkFLAT && n.Type != model.NetworkVLAN || !n.GatewayIP.Is4() {
		return flow.Set{}, nil
	}
	gw, missing := handlers.ElectedGateway(db, r.Name)
	if gw == nil {
		return flow.Set{}, []handlers.Waiting{missing}
	}
	if r.MAC.IsZero() {
		return wait("MAC of router %s", r.Name)
	}
	from, ok := comesFrom(gw, n)
	if !ok {
		return wait("VLAN id of network %s", n.ID)
	}
	responder := arpResponder(r, n, gw, from)
	responder.Announce = announcement(db, r, n, gw)
	return flow.Set{Rules: []flow.Rule{responder, echoResponder(r, n, gw)}}, nil
}

func wait(format string, args ...any) (flow.Set, []handlers.Waiting) {
	return flow.Set{}, []handlers.Waiting{handlers.Waitf(format, args...)}
}

// comesFrom matches the packets of network n on gateway gw, so that two networks
// with equal gateway addresses don't collide (row R-7 of docs/deviations.md). ok
// is false for a VLAN network without a VLAN id.
func comesFrom(gw *model.Node, n *model.Network) (m flow.Match, ok bool) {
	if n.Type == model.NetworkVLAN {
		id, ok := handlers.VLANID(n)
		return flow.Match{VLAN: flow.VLANID(id)}, ok
	}
	return flow.Match{VLAN: flow.NoVLAN, InPort: portOf(gw, n)}, true
}

// arpResponder is Net-PA: the gateway answers for n's gateway address with the
// router's MAC.
func arpResponder(r *model.Router, n *model.Network, gw *model.Node, m flow.Match) flow.Rule {
	m.EthType, m.ARPOp, m.ARPTPA = flow.EthTypeARP, flow.ARPRequest, flow.Host(n.GatewayIP)
	return flow.Rule{
		Switch: gw.IntegrationDPID(), Table: flow.TableGwEntry, Priority: flow.PriorityARPGateway, Match: m,
		Actions: []flow.Action{
			flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst},
			flow.Move{From: flow.FieldARPSHA, To: flow.FieldARPTHA},
			flow.Move{From: flow.FieldARPSPA, To: flow.FieldARPTPA},
			flow.SetUint{Field: flow.FieldARPOp, Value: uint64(flow.ARPReply)},
			flow.SetMAC{Field: flow.FieldARPSHA, MAC: r.MAC},
			flow.SetIP{Field: flow.FieldARPSPA, IP: n.GatewayIP},
			flow.SetMAC{Field: flow.FieldEthSrc, MAC: r.MAC},
			flow.Output{Port: flow.InPort},
		},
	}
}

// Values of ICMP (RFC 792) and of the answer's TTL, as ONOS has them.
const (
	icmpEchoRequest = 8
	icmpEchoReply   = 0
	replyTTL        = 0xff
)

// echoResponder is Net-PI: the gateway answers a ping of n's gateway address. VMs
// of the router's other networks may ping it too, so it is the router's MAC, not
// the port or the tag, that keeps equal addresses of two routers apart.
func echoResponder(r *model.Router, n *model.Network, gw *model.Node) flow.Rule {
	return flow.Rule{
		Switch: gw.IntegrationDPID(), Table: flow.TableGwEntry, Priority: flow.PriorityICMP,
		Match: flow.Match{
			EthType: flow.EthTypeIPv4, EthDst: r.MAC, IPProto: flow.ProtoICMP, IPDst: flow.Host(n.GatewayIP),
			ICMPType: flow.Uint8(icmpEchoRequest), ICMPCode: flow.Uint8(0),
		},
		Actions: []flow.Action{
			flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst},
			flow.Move{From: flow.FieldIPSrc, To: flow.FieldIPDst},
			flow.Load{Field: flow.FieldIPTTL, Value: replyTTL},
			flow.Load{Field: flow.FieldICMPType, Value: icmpEchoReply},
			flow.SetIP{Field: flow.FieldIPSrc, IP: n.GatewayIP},
			flow.SetMAC{Field: flow.FieldEthSrc, MAC: r.MAC},
			flow.Output{Port: flow.InPort},
		},
	}
}
