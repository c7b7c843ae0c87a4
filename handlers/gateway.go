package handlers

import (
	"net/netip"

	"kvnet/model"
	"kvnet/model/state"
)

// ExternalMAC is the address with which a gateway speaks to the outside. Until it
// is decided, it is that which all gateways had before each got one of its own.
func ExternalMAC(db state.Snapshot, gateway *model.Node) model.MAC {
	if st := db.NodeStatus(gateway.Hostname); st != nil && !st.ExternalMAC.IsZero() {
		return st.ExternalMAC
	}
	return model.FirstExternalMAC
}

// ExternalMACChanged tells whether c, a change of a node's status, may give the
// node another external address.
func ExternalMACChanged(c model.Change) bool {
	type decided struct {
		life int64
		mac  model.MAC
	}
	var versions [2]decided
	old, now := model.OldNew[*model.NodeStatus](c)
	for i, st := range []*model.NodeStatus{old, now} {
		if st != nil {
			versions[i] = decided{st.Life, st.ExternalMAC}
		}
	}
	return versions[0] != versions[1]
}

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
