package rest

import (
	"strconv"

	"kvnet/model"
)

// networkJSON is ONOS's form of a network.
type networkJSON struct {
	NetworkID *string `json:"networkId" validate:"required,key" example:"net-1" minLength:"1" maxLength:"4096"`
	Type      *string `json:"type" validate:"required,oneof=VXLAN GRE GENEVE STT FLAT VLAN" example:"VXLAN"`
	Name      *string `json:"name" validate:"required" example:"net-1"`
	// Should be positive.
	MTU *int32 `json:"mtu" validate:"required" example:"1450" format:"int32"`
	// Should be in cidr.
	GatewayIP    *string `json:"gatewayIp" validate:"required,address" example:"192.0.2.1" format:"ip"`
	DefaultRoute *bool   `json:"defaultRoute" validate:"required" example:"true"`
	CIDR         *string `json:"cidr" validate:"required,network" example:"192.0.2.0/24" format:"cidr"`
	// What tells networks apart on the wire: 1 to 16777215 for VXLAN, GRE, GENEVE and
	// STT, the VLAN id (1 to 4094) for VLAN; these types need it. FLAT has none.
	SegmentID  *string         `json:"segmentId,omitempty" example:"100" format:"number"`
	HostRoutes []hostRouteJSON `json:"hostRoutes,omitempty" validate:"dive"`
	IPPool     *ipPoolJSON     `json:"ipPool" validate:"required"`
	DNSes      []string        `json:"dnses,omitempty" validate:"dive,address" example:"192.0.2.53" format:"ip"`
} // @name KubevirtNetwork

// ipPoolJSON is the range that a network's addresses are taken from, both ends
// included.
type ipPoolJSON struct {
	Start *string `json:"start" validate:"required,address" example:"192.0.2.10" format:"ip"`
	End   *string `json:"end" validate:"required,address" example:"192.0.2.99" format:"ip"`
} // @name KubevirtIpPool

// hostRouteJSON is a route that VMs of the network get.
type hostRouteJSON struct {
	Destination *string `json:"destination" validate:"required,prefix" example:"198.51.100.0/24" format:"cidr"`
	Nexthop     *string `json:"nexthop,omitempty" validate:"omitempty,address" example:"192.0.2.2" format:"ip"`
} // @name KubevirtHostRoute

func (*networkJSON) entity() string { return "KubevirtNetwork" }

func (n *networkJSON) check(f *faults) {
	if *n.NetworkID == "" {
		f.add("networkId is empty: Kubernetes network ID cannot be null")
	}
	n.checkSegment(f)
	n.IPPool.check(f)
	bare := map[string]bool{}
	for _, r := range n.HostRoutes {
		if r.Nexthop != nil {
			continue
		}
		d := prefix(r.Destination).String()
		if bare[d] {
			f.add("hostRoutes has the destination %s without nexthop twice", d)
		}
		bare[d] = true
	}
}

func (p *ipPoolJSON) check(f *faults) {
	if address(p.Start).Is4() != address(p.End).Is4() {
		f.add("ipPool goes from %s to %s: both must be IPv4 or both IPv6", *p.Start, *p.End)
	}
}

// checkSegment holds the segment id against what its type of network can carry
// on the wire.
func (n *networkJSON) checkSegment(f *faults) {
	limit := uint64(16777215)
	switch model.NetworkType(*n.Type) {
	case model.NetworkFLAT:
		n.SegmentID = nil // ONOS drops it
		return
	case model.NetworkVLAN:
		limit = 4094
	}
	if n.SegmentID == nil {
		f.add("segmentId is required in a %s of type %s: Network segmentId cannot be null", n.entity(), *n.Type)
		return
	}
	if id, err := strconv.ParseUint(*n.SegmentID, 10, 32); err != nil || id < 1 || id > limit {
		f.add("segmentId %q is no number from 1 to %d, which a network of type %s needs", shown(*n.SegmentID), limit, *n.Type)
	}
}

func (n *networkJSON) key() string { return *n.NetworkID }

func (n *networkJSON) apply(model.Object) model.Object {
	out := &model.Network{
		ID:           *n.NetworkID,
		Type:         model.NetworkType(*n.Type),
		Name:         *n.Name,
		MTU:          *n.MTU,
		SegmentID:    text(n.SegmentID),
		GatewayIP:    address(n.GatewayIP),
		DefaultRoute: *n.DefaultRoute,
		CIDR:         *n.CIDR,
		IPPool:       model.IPPool{Start: address(n.IPPool.Start), End: address(n.IPPool.End)},
	}
	for _, r := range n.HostRoutes {
		out.HostRoutes = appendNew(out.HostRoutes, model.HostRoute{Destination: prefix(r.Destination), Nexthop: address(r.Nexthop)})
	}
	for _, d := range n.DNSes {
		out.DNSes = appendNew(out.DNSes, address(&d))
	}
	return out
}

// warnings says what of a network is stored as written though it hardly works.
func (n *networkJSON) warnings() []string {
	var out []string
	if *n.MTU <= 0 {
		out = append(out, "mtu is not positive")
	}
	p := prefix(n.CIDR)
	if !p.Contains(address(n.GatewayIP)) {
		out = append(out, "gatewayIp is not in cidr")
	}
	if !p.Contains(address(n.IPPool.Start)) || !p.Contains(address(n.IPPool.End)) {
		out = append(out, "ipPool is not in cidr")
	}
	return out
}

func encodeNetwork(n *model.Network) *networkJSON {
	out := &networkJSON{
		NetworkID:    &n.ID,
		Type:         ptr(string(n.Type)),
		Name:         &n.Name,
		MTU:          &n.MTU,
		GatewayIP:    addressText(n.GatewayIP),
		DefaultRoute: &n.DefaultRoute,
		CIDR:         &n.CIDR,
		SegmentID:    textOrNil(n.SegmentID),
		IPPool:       &ipPoolJSON{addressText(n.IPPool.Start), addressText(n.IPPool.End)},
	}
	for _, r := range n.HostRoutes {
		out.HostRoutes = append(out.HostRoutes, hostRouteJSON{ptr(r.Destination.String()), addressText(r.Nexthop)})
	}
	for _, d := range n.DNSes {
		out.DNSes = append(out.DNSes, d.String())
	}
	return out
}
