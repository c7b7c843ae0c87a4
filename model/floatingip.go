package model

import "net/netip"

// FloatingIP is an external address that stands for a VM or a balancer.
type FloatingIP struct {
	Meta
	ID          string     `json:"id"`
	RouterName  string     `json:"routerName"`
	NetworkName string     `json:"networkName"`
	FloatingIP  netip.Addr `json:"floatingIp"`
	PodName     *string    `json:"podName,omitempty"`
	VMName      *string    `json:"vmName,omitempty"`
	FixedIP     netip.Addr `json:"fixedIp"` // invalid: not bound
}

// Kind implements Object.
func (*FloatingIP) Kind() Kind { return KindFloatingIP }

// Key implements Object.
func (f *FloatingIP) Key() string { return f.ID }
