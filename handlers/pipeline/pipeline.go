package pipeline

import (
	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

const name = "pipeline"

// Handler computes the base rules of the bridges of each node. They depend on
// nothing but the node's existence and type, so they stay when a node becomes
// INCOMPLETE and when a server starts (row P-1 of docs/deviations.md).
type Handler struct{}

// New makes the handler.
func New() Handler { return Handler{} }

// Name implements handlers.Handler.
func (Handler) Name() string { return name }

// Affected implements handlers.Handler.
func (Handler) Affected(_ state.Snapshot, c model.Change) []flow.Owner {
	if c.Kind != model.KindNode {
		return nil
	}
	return []flow.Owner{handlers.OwnerOf(name, c.Key)}
}

// Owners implements handlers.Handler.
func (Handler) Owners(db state.Snapshot) (owners []flow.Owner) {
	for n := range db.Nodes() {
		owners = append(owners, handlers.OwnerOf(name, n.Hostname))
	}
	return owners
}

// Rules implements handlers.Handler.
func (Handler) Rules(db state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	parts, ok := handlers.OwnerParts(name, o)
	if !ok || len(parts) != 1 {
		return flow.Set{}, nil
	}
	n := db.Node(parts[0])
	if n == nil {
		return flow.Set{}, nil
	}
	switch n.Type {
	case model.NodeGateway:
		set, waiting := onIntegrationBridge(n, gatewayRules)
		set.Rules = append(set.Rules, physicalBridges(n)...)
		return set, waiting
	case model.NodeWorker:
		return onIntegrationBridge(n, workerRules)
	}
	return flow.Set{}, nil
}

// gatewayRules are Flow-GW-1 to Flow-GW-4.
var gatewayRules = []flow.Rule{
	{Table: flow.TableStatInbound, Goto: flow.TableGwEntry},
	{Table: flow.TableGwEntry, Goto: flow.TableGwDrop},
	{Table: flow.TableGwDrop},
	{Table: flow.TableForwarding, Priority: flow.PriorityLow, Actions: []flow.Action{flow.Output{Port: flow.Normal}}},
}

// workerRules are Flow-W-1 to Flow-W-6, and the misses of the access lists, which
// let traffic pass as long as there is no handler of security groups.
var workerRules = []flow.Rule{
	{Table: flow.TableStatInbound, Goto: flow.TableVTapInbound},
	{Table: flow.TableVTapInbound, Goto: flow.TableDHCP},
	{Table: flow.TableDHCP, Goto: flow.TableARP},
	{Table: flow.TableARP, Goto: flow.TableACLEgress},
	{Table: flow.TableARP, Priority: flow.PriorityARPDefault, Match: flow.Match{EthType: flow.EthTypeARP}, Goto: flow.TableForwarding},
	{Table: flow.TableForwarding, Priority: flow.PriorityLow, Actions: []flow.Action{flow.Output{Port: flow.Normal}}},
	{Table: flow.TableACLEgress, Goto: flow.TableForwarding},
	{Table: flow.TableACLIngress, Goto: flow.TableForwarding},
}

// onIntegrationBridge places rules on n's br-int.
func onIntegrationBridge(n *model.Node, rules []flow.Rule) (set flow.Set, waiting []handlers.Waiting) {
	d := n.IntegrationDPID()
	if d == 0 {
		return flow.Set{}, []handlers.Waiting{handlers.Waitf("integration bridge of node %s", n.Hostname)}
	}
	for _, r := range rules {
		r.Switch = d
		set.Rules = append(set.Rules, r)
	}
	return set, nil
}

// physicalBridges are Flow-P: each physical bridge that the node names is an
// ordinary switch. The node's other bridges never become one by being named
// twice.
func physicalBridges(n *model.Node) (rules []flow.Rule) {
	done := map[model.DPID]bool{0: true, n.IntegrationDPID(): true, n.TunnelDPID(): true}
	for _, p := range n.PhysIntfs {
		d, _ := p.PhysBridge.DPID()
		if done[d] {
			continue
		}
		done[d] = true
		rules = append(rules, flow.Rule{
			Switch: d, Table: flow.TableStatInbound, Priority: flow.PriorityLow,
			Actions: []flow.Action{flow.Output{Port: flow.Normal}},
		})
	}
	return rules
}
