package model

import "net/netip"

// NodeType is the part that a host plays.
type NodeType string

// The node types of ONOS.
const (
	NodeMaster  NodeType = "MASTER"
	NodeWorker  NodeType = "WORKER"
	NodeGateway NodeType = "GATEWAY"
	NodeOther   NodeType = "OTHER"
)

// NodeTypes are all node types.
var NodeTypes = []NodeType{NodeMaster, NodeWorker, NodeGateway, NodeOther}

// NodeState is how far the bootstrap of a node has come.
type NodeState string

// The node states of ONOS.
const (
	NodePreOnBoard    NodeState = "PRE_ON_BOARD"
	NodeOnBoarded     NodeState = "ON_BOARDED"
	NodeInit          NodeState = "INIT"
	NodeDeviceCreated NodeState = "DEVICE_CREATED"
	NodeComplete      NodeState = "COMPLETE"
	NodeIncomplete    NodeState = "INCOMPLETE"
)

// Node is a host with its bridges.
type Node struct {
	Meta
	Hostname          string         `json:"hostname"`
	Type              NodeType       `json:"type"`
	ManagementIP      netip.Addr     `json:"managementIp"`
	DataIP            netip.Addr     `json:"dataIp"` // invalid: none
	IntegrationBridge DeviceID       `json:"integrationBridge"`
	TunnelBridge      DeviceID       `json:"tunnelBridge"`
	PhysIntfs         []PhysicalIntf `json:"phyIntfs,omitempty"`
	// GatewayBridgeName is the physical network through which a gateway reaches
	// the outside.
	GatewayBridgeName *string `json:"gatewayBridgeName,omitempty"`
	// InitRequest counts the requests to start the bootstrap again.
	InitRequest uint64 `json:"initRequest,omitempty"`
}

// PhysicalIntf attaches a node to a physical network.
type PhysicalIntf struct {
	Network    string   `json:"network"`
	Intf       string   `json:"intf"`
	PhysBridge DeviceID `json:"physBridgeId"`
}

// Kind implements Object.
func (*Node) Kind() Kind { return KindNode }

// Key implements Object.
func (n *Node) Key() string { return n.Hostname }

// IntegrationDPID is the datapath id of br-int; 0 if it names no switch.
func (n *Node) IntegrationDPID() DPID { d, _ := n.IntegrationBridge.DPID(); return d }

// TunnelDPID is the datapath id of br-tun; 0 if it names no switch.
func (n *Node) TunnelDPID() DPID { d, _ := n.TunnelBridge.DPID(); return d }

// PatchPortMax is the length to which Linux cuts the name of an interface.
const PatchPortMax = 15

// PatchPortPrefix begins the names of br-int's patch ports.
const PatchPortPrefix = "int-to-"

// PatchPort is the name of br-int's patch port towards a physical network:
// "int-to-" and the network's name, cut to 15 characters on both sides (row N-3
// of docs/deviations.md).
func PatchPort(physNetwork string) string {
	p := PatchPortPrefix + physNetwork
	if len(p) > PatchPortMax {
		p = p[:PatchPortMax]
	}
	return p
}

// ExternalPatchPort is the name of a gateway's patch port to the outside; empty
// if the node names no gateway bridge.
func (n *Node) ExternalPatchPort() string {
	if n.GatewayBridgeName == nil || *n.GatewayBridgeName == "" {
		return ""
	}
	return PatchPort(*n.GatewayBridgeName)
}

// NodeStatus holds what the leader has decided about a node.
type NodeStatus struct {
	Meta
	Hostname string `json:"hostname"`
	// Life is Created of the node that this is about.
	Life  int64     `json:"life"`
	State NodeState `json:"state"`
	// InitRequest is the node's InitRequest that was last considered.
	InitRequest uint64 `json:"initRequest,omitempty"`
	// ExternalMAC is the address with which a gateway speaks to the outside, from
	// when the node is first a gateway to the end of its life.
	ExternalMAC MAC `json:"externalMac,omitzero"`
}

// FirstExternalMAC is the address with which the first gateway speaks to the
// outside (DEFAULT_GATEWAY_MAC of ONOS, where all gateways have it).
var FirstExternalMAC = MAC{0xfe, 0, 0, 0, 0, 0x02}

// Kind implements Object.
func (*NodeStatus) Kind() Kind { return KindNodeStatus }

// Key implements Object.
func (s *NodeStatus) Key() string { return s.Hostname }
