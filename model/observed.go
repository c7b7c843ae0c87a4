package model

import "time"

// Role is the role of this server on a switch (OpenFlow 1.3.5, section 6.3.6).
type Role string

// The roles. A connection is EQUAL until its first role reply.
const (
	RoleEqual  Role = "EQUAL"
	RoleMaster Role = "MASTER"
	RoleSlave  Role = "SLAVE"
)

// Switch is a switch that has been connected to this server at some time of its
// life. It exists in memory only.
type Switch struct {
	Meta
	DPID       DPID
	Address    string // of the connection, host:port
	TLS        bool   // the connection is over TLS
	Connected  bool   // ports are known and the role is settled
	Role       Role
	Generation uint64 // the generation id that the switch last confirmed
	Since      time.Time
	LastError  string
}

// Kind implements Object.
func (*Switch) Kind() Kind { return KindSwitch }

// Key implements Object.
func (s *Switch) Key() string { return s.DPID.String() }

// SwitchPort is a port of a connected switch. It exists in memory only.
type SwitchPort struct {
	Meta
	DPID   DPID
	Number uint32
	Name   string
	MAC    MAC
	// Enabled: neither administratively down nor without link (PORT_DOWN of the
	// configuration, LINK_DOWN of the state).
	Enabled bool
}

// Kind implements Object.
func (*SwitchPort) Kind() Kind { return KindSwitchPort }

// Key implements Object: the switch and the port's name, because handlers name
// ports by name.
func (p *SwitchPort) Key() string {
	return p.DPID.String() + "/" + p.Name
}
