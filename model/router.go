package model

import "net/netip"

// Router is a tenant's router: it joins internal networks and, through an
// external network, the upstream (peer) router.
type Router struct {
	Meta
	Name        string      `json:"name"`
	Description *string     `json:"description,omitempty"`
	EnableSNAT  bool        `json:"enableSnat"`
	MAC         MAC         `json:"mac"`
	Internal    []string    `json:"internal,omitempty"` // network ids, sorted, without duplicates
	External    *External   `json:"external,omitempty"`
	Peer        *PeerRouter `json:"peerRouter,omitempty"`
	// Gateway is the hostname that a client wrote. GatewayWrite counts the
	// writes that named one, so that the leader can tell a new wish from one
	// that it has considered (see RouterStatus).
	Gateway      string `json:"gateway,omitempty"`
	GatewayWrite uint64 `json:"gatewayWrite,omitempty"`
}

// External is a router's attachment to an external network.
type External struct {
	// IPText is the address as the client wrote it (ONOS keeps it as text).
	IPText    string `json:"ip"`
	NetworkID string `json:"network"`
}

// IP is the parsed address: the one that SNAT uses. It is invalid if the text is
// no IPv4 address.
func (e *External) IP() netip.Addr {
	if e == nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(e.IPText)
	if err != nil || !a.Is4() {
		return netip.Addr{}
	}
	return a
}

// PeerRouter is the upstream router of a router.
type PeerRouter struct {
	IP netip.Addr `json:"ip"`
	// MAC is the address that a client wrote, or zero. Write counts the writes
	// that named a MAC or another IP.
	MAC   MAC    `json:"mac"`
	Write uint64 `json:"write,omitempty"`
}

// Kind implements Object.
func (*Router) Kind() Kind { return KindRouter }

// Key implements Object.
func (r *Router) Key() string { return r.Name }

// SNATIP is the address that the router's VMs are seen with outside. It is
// invalid if there is none.
func (r *Router) SNATIP() netip.Addr { return r.External.IP() }

// RouterStatus holds what the leader has decided about a router.
type RouterStatus struct {
	Meta
	Name string `json:"name"`
	// Life is Created of the router that this is about. A status of another
	// life counts as absent.
	Life int64 `json:"life"`
	// Gateway is the hostname of the elected gateway; empty: none.
	Gateway string `json:"gateway,omitempty"`
	// GatewayWrite is the router's GatewayWrite that was last considered.
	GatewayWrite uint64 `json:"gatewayWrite,omitempty"`
	// PeerIP, PeerMAC and PeerWrite: the upstream router's MAC, written or
	// learned, for this PeerIP, and PeerRouter.Write as last considered.
	PeerIP    netip.Addr `json:"peerIp"`
	PeerMAC   MAC        `json:"peerMac"`
	PeerWrite uint64     `json:"peerWrite,omitempty"`
	// Zone is the conntrack zone of the router on its gateway; 0: none yet.
	Zone uint16 `json:"zone,omitempty"`
}

// Kind implements Object.
func (*RouterStatus) Kind() Kind { return KindRouterStatus }

// Key implements Object.
func (s *RouterStatus) Key() string { return s.Name }
