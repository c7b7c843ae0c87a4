package model

import "net/netip"

// LoadBalancer spreads connections to a virtual address over members.
type LoadBalancer struct {
	Meta
	Name        string             `json:"name"`
	Description *string            `json:"description,omitempty"`
	VIP         netip.Addr         `json:"vip"`
	NetworkID   string             `json:"networkId"`
	Members     []netip.Addr       `json:"members,omitempty"` // sorted, without duplicates
	Rules       []LoadBalancerRule `json:"rules,omitempty"`
}

// The protocols that can be balanced, in upper case.
const (
	ProtocolTCP  = "TCP"
	ProtocolUDP  = "UDP"
	ProtocolICMP = "ICMP"
)

// MaxMembers is how many members a balancer may have: as many as one OpenFlow
// message holds buckets, which is at most 64 KiB long and names all of a group.
const MaxMembers = 1023

// LoadBalancerRule is one protocol and port range that a balancer serves.
type LoadBalancerRule struct {
	Protocol     string `json:"protocol"`               // as the client wrote it
	PortRangeMin *int32 `json:"portRangeMin,omitempty"` // only of TCP and UDP
	PortRangeMax *int32 `json:"portRangeMax,omitempty"`
}

// Kind implements Object.
func (*LoadBalancer) Kind() Kind { return KindLoadBalancer }

// Key implements Object.
func (l *LoadBalancer) Key() string { return l.Name }

// LoadBalancerStatus holds what the leader has decided about a balancer.
type LoadBalancerStatus struct {
	Meta
	Name string `json:"name"`
	// Life is Created of the balancer that this is about.
	Life int64 `json:"life"`
	// GroupID is the OpenFlow group of the balancer, 0x6b000000 to 0x6bffffff.
	GroupID uint32 `json:"groupId"`
}

// Kind implements Object.
func (*LoadBalancerStatus) Kind() Kind { return KindLoadBalancerStatus }

// Key implements Object.
func (s *LoadBalancerStatus) Key() string { return s.Name }
