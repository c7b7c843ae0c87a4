package routerarp

import (
	"net/netip"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

const name = "routerarp"

// Handler computes the rules that bring ARP packets of upstream routers to the
// controller.
type Handler struct{}

// New makes the handler.
func New() Handler { return Handler{} }

// Name implements handlers.Handler.
func (Handler) Name() string { return name }

func owner(router string) flow.Owner { return handlers.OwnerOf(name, router) }

// Owners implements handlers.Handler.
func (Handler) Owners(db state.Snapshot) (owners []flow.Owner) {
	for r := range db.Routers() {
		owners = append(owners, owner(r.Name))
	}
	return owners
}

// Affected implements handlers.Handler.
func (Handler) Affected(db state.Snapshot, c model.Change) []flow.Owner {
	switch c.Kind {
	case model.KindRouter, model.KindRouterStatus:
		return []flow.Owner{owner(c.Key)}
	case model.KindNode:
		var set handlers.OwnerSet
		for router := range db.RoutersByGateway(c.Key) {
			set.Add(owner(router))
		}
		return set.List()
	}
	return nil
}

// Rules implements handlers.Handler. The rules stay when the MAC is known, so that
// a changed MAC is noticed (row A-4 of docs/deviations.md).
func (Handler) Rules(db state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	parts, ok := handlers.OwnerParts(name, o)
	if !ok || len(parts) != 1 {
		return flow.Set{}, nil
	}
	r := db.Router(parts[0])
	if r == nil {
		return flow.Set{}, nil
	}
	ip, peer := r.SNATIP(), handlers.PeerIP(r)
	if !ip.IsValid() || !peer.IsValid() {
		return flow.Set{}, nil
	}
	gw, missing := handlers.ElectedGateway(db, r.Name)
	if gw == nil {
		return flow.Set{}, []handlers.Waiting{missing}
	}
	set := flow.Set{Rules: []flow.Rule{punt(gw, flow.Port{}, flow.ARPReply, peer, ip)}}
	patch := gw.ExternalPatchPort()
	if patch == "" {
		return set, []handlers.Waiting{handlers.Waitf("gatewayBridgeName of node %s", gw.Hostname)}
	}
	for _, op := range []uint16{flow.ARPRequest, flow.ARPReply} {
		set.Rules = append(set.Rules, punt(gw, flow.NamedPort(patch), op, peer, peer))
	}
	return set, nil
}

// puntLen is how much of a packet the controller gets: all of it.
const puntLen = 0xffff

// punt is Arp-P: ARP packets from the peer about target come to the controller.
func punt(gw *model.Node, in flow.Port, op uint16, peer, target netip.Addr) flow.Rule {
	return flow.Rule{
		Switch: gw.IntegrationDPID(), Table: flow.TableGwEntry, Priority: flow.PriorityARPGateway,
		Match: flow.Match{
			InPort: in, EthType: flow.EthTypeARP, ARPOp: op,
			ARPSPA: flow.Host(peer), ARPTPA: flow.Host(target),
		},
		Actions: []flow.Action{flow.Output{Port: flow.Controller, MaxLen: puntLen}},
	}
}
