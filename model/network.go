package model

import (
	"net/netip"
	"strconv"
)

// NetworkType is the way in which a network's frames travel between nodes.
type NetworkType string

// The network types of ONOS.
const (
	NetworkVXLAN  NetworkType = "VXLAN"
	NetworkGRE    NetworkType = "GRE"
	NetworkGENEVE NetworkType = "GENEVE"
	NetworkSTT    NetworkType = "STT"
	NetworkFLAT   NetworkType = "FLAT"
	NetworkVLAN   NetworkType = "VLAN"
)

// NetworkTypes are all network types.
var NetworkTypes = []NetworkType{NetworkVXLAN, NetworkGRE, NetworkGENEVE, NetworkSTT, NetworkFLAT, NetworkVLAN}

// IsTunnel tells whether frames of the network travel in tunnels between the
// nodes' tunnel bridges.
func (t NetworkType) IsTunnel() bool {
	return t == NetworkVXLAN || t == NetworkGRE || t == NetworkGENEVE || t == NetworkSTT
}

// Network is a tenant or provider network.
type Network struct {
	Meta
	ID           string       `json:"id"`
	Type         NetworkType  `json:"type"`
	Name         string       `json:"name"`
	MTU          int32        `json:"mtu"`
	SegmentID    string       `json:"segmentId,omitempty"` // decimal text; empty: none
	GatewayIP    netip.Addr   `json:"gatewayIp"`
	DefaultRoute bool         `json:"defaultRoute"`
	CIDR         string       `json:"cidr"` // as the client wrote it; Prefix parses it
	HostRoutes   []HostRoute  `json:"hostRoutes,omitempty"`
	IPPool       IPPool       `json:"ipPool"`
	DNSes        []netip.Addr `json:"dnses,omitempty"`
}

// HostRoute is a route that DHCP hands to the VMs of a network. Nexthop is
// invalid if there is none.
type HostRoute struct {
	Destination netip.Prefix `json:"destination"`
	Nexthop     netip.Addr   `json:"nexthop"`
}

// IPPool is the range of addresses for VMs, both ends included. The ends are
// kept as the client wrote them, also in reversed order.
type IPPool struct {
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
}

// Kind implements Object.
func (*Network) Kind() Kind { return KindNetwork }

// Key implements Object.
func (n *Network) Key() string { return n.ID }

// Prefix is the parsed CIDR with the host bits cleared. It is invalid if the
// CIDR can't be parsed.
func (n *Network) Prefix() netip.Prefix {
	p, err := netip.ParsePrefix(n.CIDR)
	if err != nil {
		return netip.Prefix{}
	}
	return p.Masked()
}

// Segment is the segment id as a number: the tunnel key of a tunnel network, the
// VLAN id of a VLAN network. ok is false if there is none.
func (n *Network) Segment() (id uint32, ok bool) {
	x, err := strconv.ParseUint(n.SegmentID, 10, 32)
	return uint32(x), err == nil
}
