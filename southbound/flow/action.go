package flow

import (
	"net/netip"

	"kvnet/model"
)

// Action is one action of an APPLY_ACTIONS instruction or of a bucket. All
// actions are comparable values (NAT is held by value in CT).
type Action interface {
	action()
	// String writes the action as ovs-ofctl does.
	String() string
}

// Field names a field that actions read or write.
type Field string

// The fields, by the names that ovs-ofctl uses in set_field.
const (
	FieldEthSrc   Field = "eth_src"
	FieldEthDst   Field = "eth_dst"
	FieldIPSrc    Field = "ip_src"
	FieldIPDst    Field = "ip_dst"
	FieldARPOp    Field = "arp_op"
	FieldARPSHA   Field = "arp_sha"
	FieldARPTHA   Field = "arp_tha"
	FieldARPSPA   Field = "arp_spa"
	FieldARPTPA   Field = "arp_tpa"
	FieldTunID    Field = "tun_id"
	FieldTunDst   Field = "tun_dst"
	FieldVLANVID  Field = "vlan_vid"
	FieldMetadata Field = "metadata"
	FieldIPTTL    Field = "nw_ttl"    // NXM_NX_IP_TTL
	FieldICMPType Field = "icmp_type" // NXM_OF_ICMP_TYPE
)

// Output sends the packet to a port. MaxLen counts only for the controller.
type Output struct {
	Port   Port
	MaxLen uint16
}

// ToGroup hands the packet to a group.
type ToGroup struct{ ID uint32 }

// SetMAC writes an Ethernet address into eth_src, eth_dst, arp_sha or arp_tha.
type SetMAC struct {
	Field Field
	MAC   model.MAC
}

// SetIP writes an IPv4 address into ip_src, ip_dst, arp_spa, arp_tpa or tun_dst.
type SetIP struct {
	Field Field
	IP    netip.Addr
}

// SetUint writes a number into arp_op, tun_id, metadata or vlan_vid (for vlan_vid
// the VLAN id without the 0x1000 bit).
type SetUint struct {
	Field Field
	Value uint64
}

// Move copies a whole field into another (NXAST_REG_MOVE): eth_src to eth_dst,
// ip_src to ip_dst, arp_sha to arp_tha, arp_spa to arp_tpa.
type Move struct{ From, To Field }

// Load writes a number into nw_ttl or icmp_type (NXAST_REG_LOAD).
type Load struct {
	Field Field
	Value uint64
}

// PopVLAN removes the outer VLAN tag.
type PopVLAN struct{}

// PushVLAN adds a VLAN tag of Ethernet type 0x8100.
type PushVLAN struct{}

// CT sends the packet through the connection tracker (NXAST_CT).
type CT struct {
	Commit bool
	Zone   uint16
	Table  uint8 // where a copy goes on with the tracked state; 0: nowhere
	NAT    NAT
}

// NAT is the nat action nested in CT. Its zero value means "no nat".
type NAT struct {
	Kind             NATKind
	IPMin, IPMax     netip.Addr // IPv4; invalid: no range
	PortMin, PortMax uint16     // 0: no range
}

// NATKind is the direction of a NAT.
type NATKind uint8

// The kinds of NAT: none, the translation of a known connection, of the source,
// of the destination.
const (
	NATNone NATKind = iota
	NATKnown
	NATSource
	NATDestination
)

func (Output) action()   {}
func (ToGroup) action()  {}
func (SetMAC) action()   {}
func (SetIP) action()    {}
func (SetUint) action()  {}
func (Move) action()     {}
func (Load) action()     {}
func (PopVLAN) action()  {}
func (PushVLAN) action() {}
func (CT) action()       {}
