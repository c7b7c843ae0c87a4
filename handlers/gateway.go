package handlers

import (
	"net/netip"

	"kvnet/model"
	"kvnet/model/state"
)

// GatewayMAC is the address with which gateways speak to the outside
// (DEFAULT_GATEWAY_MAC of ONOS).
var GatewayMAC = model.MAC{0xfe, 0, 0, 0, 0, 0x02}

// ElectedGateway returns the node that is decided to be the gateway of a router.
// The node has an integration bridge that is a switch. If there is no such node
// yet, it is nil and the second result says what is missing.
func ElectedGateway(db state.Snapshot, router string) (*model.Node, Waiting) {
	st := db.RouterStatus(router)
	if st == nil || st.Gateway == "" {
		return nil, Waitf("gateway for router %s", router)
	}
	n := db.Node(st.Gateway)
	if n == nil {
		return nil, Waitf("node %s", st.Gateway)
	}
	if n.IntegrationDPID() == 0 {
		return nil, Waitf("integration bridge of node %s", n.Hostname)
	}
	return n, ""
}

// PeerIP is the IPv4 address of the upstream router of r. It is invalid if there
// is none.
func PeerIP(r *model.Router) netip.Addr {
	if r == nil || r.Peer == nil || !r.Peer.IP.Is4() {
		return netip.Addr{}
	}
	return r.Peer.IP
}
