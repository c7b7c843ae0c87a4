package model

import "net/netip"

// Port is a VM's interface in a network. Its key is its MAC.
type Port struct {
	Meta
	VMName    string     `json:"vmName"`
	NetworkID string     `json:"networkId"`
	MAC       MAC        `json:"mac"`
	IP        netip.Addr `json:"ip"` // invalid: none
	// DeviceID is the integration bridge of the worker that runs the VM, for
	// tunnel networks too; empty: not placed yet.
	DeviceID DeviceID `json:"deviceId,omitempty"`
	// PortNumber is informative; nil: none.
	PortNumber     *uint32  `json:"portNumber,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"` // sorted, without duplicates
}

// Kind implements Object.
func (*Port) Kind() Kind { return KindPort }

// Key implements Object.
func (p *Port) Key() string { return p.MAC.String() }
