package rest

import (
	"fmt"
	"slices"

	"kvnet/model"
	"kvnet/model/state"
)

// nodesJSON is the body of POST and PUT of nodes.
type nodesJSON struct {
	Nodes *[]nodeJSON `json:"nodes" validate:"required,dive"`
} // @name KubevirtNodes

// nodeJSON is ONOS's form of a node. The state is written and never read.
type nodeJSON struct {
	Hostname *string `json:"hostname" validate:"required,key" example:"worker-1" minLength:"1" maxLength:"4096"`
	Type     *string `json:"type" validate:"required,oneof=MASTER WORKER GATEWAY OTHER" example:"WORKER"`
	// Written, never read.
	State        *string `json:"state" read:"-" readonly:"true" enums:"PRE_ON_BOARD,ON_BOARDED,INIT,DEVICE_CREATED,COMPLETE,INCOMPLETE" example:"COMPLETE"`
	ManagementIP *string `json:"managementIp" validate:"required,address" example:"192.0.2.201" format:"ip"`
	// The datapath ids of the node's bridges. Made from the host's name if they are
	// left out.
	IntegrationBridge *string `json:"integrationBridge,omitempty" validate:"omitempty,device" example:"of:0000000000000001" format:"device"`
	TunnelBridge      *string `json:"tunnelBridge,omitempty" validate:"omitempty,device" example:"of:0000000000000002" format:"device"`
	// The node's end of tunnels.
	DataIP    *string        `json:"dataIp,omitempty" validate:"omitempty,host" example:"198.51.100.201" format:"ip"`
	PhysIntfs []physIntfJSON `json:"phyIntfs,omitempty" validate:"dive"`
	// The bridge of a gateway node that leads to the outside.
	GatewayBridgeName *string `json:"gatewayBridgeName,omitempty" example:"br-ex"`
} // @name KubevirtNode

// physIntfJSON is an interface of a node in a provider network.
type physIntfJSON struct {
	Network *string `json:"network" validate:"required" example:"physnet1"`
	Intf    *string `json:"intf" validate:"required" example:"eth1"`
	// Made from the other two and the host's name if it is left out.
	PhysBridge *string `json:"physBridgeId,omitempty" validate:"omitempty,device" example:"of:0000000000000003" format:"device"`
} // @name KubevirtPhyInterface

func (n *nodesJSON) hostnames() (out []string) {
	for i := range *n.Nodes {
		out = append(out, *(*n.Nodes)[i].Hostname)
	}
	return out
}

func (*nodesJSON) entity() string { return "KubevirtNode" }

func (n *nodesJSON) check(f *faults) {
	for i := range *n.Nodes {
		x := &(*n.Nodes)[i]
		if *x.Hostname == "" {
			f.add("nodes[%d].hostname is empty: KubeVirt node hostname cannot be null", i)
		}
	}
}

func (n *nodesJSON) warnings() (out []string) {
	for i := range *n.Nodes {
		out = append(out, (*n.Nodes)[i].warnings()...)
	}
	if more := len(out) - maxWarnings; more > 0 {
		out = append(out[:maxWarnings], fmt.Sprintf("%d more bridges name no switch", more))
	}
	return out
}

func (n *nodeJSON) warnings() (out []string) {
	look := func(field string, id *string) {
		if w := bridgeWarning(fmt.Sprintf("%s of node %q:", field, shown(*n.Hostname)), id); w != "" {
			out = append(out, w)
		}
	}
	look("integrationBridge", n.IntegrationBridge)
	look("tunnelBridge", n.TunnelBridge)
	for i, p := range n.PhysIntfs {
		look(fmt.Sprintf("phyIntfs[%d].physBridgeId", i), p.PhysBridge)
	}
	return out
}

// model is the node as it is stored when it is new. Bridges that the client
// leaves out get the ids that ONOS gives them.
func (n *nodeJSON) model() *model.Node {
	out := &model.Node{
		Hostname:          *n.Hostname,
		Type:              model.NodeType(*n.Type),
		ManagementIP:      address(n.ManagementIP),
		DataIP:            address(n.DataIP),
		IntegrationBridge: model.DeviceID(text(n.IntegrationBridge)),
		TunnelBridge:      model.DeviceID(text(n.TunnelBridge)),
		GatewayBridgeName: n.GatewayBridgeName,
	}
	if out.IntegrationBridge == "" {
		out.IntegrationBridge = model.BridgeDeviceID("br-int-" + out.Hostname)
	}
	if out.TunnelBridge == "" {
		out.TunnelBridge = model.BridgeDeviceID("br-tun-" + out.Hostname)
	}
	for _, p := range n.PhysIntfs {
		intf := model.PhysicalIntf{Network: *p.Network, Intf: *p.Intf, PhysBridge: model.DeviceID(text(p.PhysBridge))}
		if intf.PhysBridge == "" {
			intf.PhysBridge = model.BridgeDeviceID(intf.Network + intf.Intf + out.Hostname)
		}
		out.PhysIntfs = appendNew(out.PhysIntfs, intf)
	}
	return out
}

// update is the stored node after a PUT of n. Bridges that the client leaves out
// stay. A change starts the bootstrap again, as in ONOS; without one, update
// returns old itself.
func (n *nodeJSON) update(old *model.Node) *model.Node {
	out := n.model()
	out.Meta, out.InitRequest = old.Meta, old.InitRequest
	if text(n.IntegrationBridge) == "" {
		out.IntegrationBridge = old.IntegrationBridge
	}
	if text(n.TunnelBridge) == "" {
		out.TunnelBridge = old.TunnelBridge
	}
	if sameNode(old, out) {
		return old
	}
	out.InitRequest++
	return out
}

// sameNode tells whether two nodes say the same; the order of interfaces is
// nothing that they say.
func sameNode(a, b *model.Node) bool {
	if len(a.PhysIntfs) != len(b.PhysIntfs) {
		return false
	}
	for _, p := range a.PhysIntfs {
		if !slices.Contains(b.PhysIntfs, p) {
			return false
		}
	}
	return a.Hostname == b.Hostname && a.Type == b.Type &&
		a.ManagementIP == b.ManagementIP && a.DataIP == b.DataIP &&
		a.IntegrationBridge == b.IntegrationBridge && a.TunnelBridge == b.TunnelBridge &&
		text(a.GatewayBridgeName) == text(b.GatewayBridgeName)
}

func encodeNode(db state.Snapshot, n *model.Node) *nodeJSON {
	out := &nodeJSON{
		Hostname:          &n.Hostname,
		Type:              ptr(string(n.Type)),
		State:             ptr(string(db.NodeState(n.Hostname))),
		ManagementIP:      addressText(n.ManagementIP),
		IntegrationBridge: textOrNil(string(n.IntegrationBridge)),
		TunnelBridge:      textOrNil(string(n.TunnelBridge)),
		DataIP:            addressText(n.DataIP),
		GatewayBridgeName: n.GatewayBridgeName,
	}
	for _, p := range n.PhysIntfs {
		out.PhysIntfs = append(out.PhysIntfs, physIntfJSON{&p.Network, &p.Intf, textOrNil(string(p.PhysBridge))})
	}
	return out
}
