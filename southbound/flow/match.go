package flow

import (
	"net/netip"

	"kvnet/model"
)

// Ethernet types and IP protocols that rules match.
const (
	EthTypeIPv4 uint16 = 0x0800
	EthTypeARP  uint16 = 0x0806
	EthTypeVLAN uint16 = 0x8100
	EthTypeIPv6 uint16 = 0x86dd

	ProtoICMP uint8 = 1
	ProtoTCP  uint8 = 6
	ProtoUDP  uint8 = 17
	ProtoSCTP uint8 = 132

	ARPRequest uint16 = 1
	ARPReply   uint16 = 2
)

// Bits of CTState (ovs-fields(7), ct_state).
const (
	CTNew uint32 = 1 << iota
	CTEst
	CTRel
	CTRpl
	CTInv
	CTTrk
)

// Match says which packets a rule is for. A zero field matches anything. Match
// is comparable: equal matches are equal values.
//
// Fields have to be set together with what they need (ETH_TYPE for IP fields,
// IP_PROTO for ports); Validate checks that.
type Match struct {
	InPort   Port
	EthSrc   model.MAC
	EthDst   model.MAC
	EthType  uint16
	VLAN     VLAN
	IPProto  uint8
	IPSrc    netip.Prefix // IPv4, masked
	IPDst    netip.Prefix
	TPSrc    PortMask // of the protocol IPProto: TCP, UDP or SCTP
	TPDst    PortMask
	ICMPType OptUint8
	ICMPCode OptUint8
	ARPOp    uint16
	ARPSPA   netip.Prefix
	ARPTPA   netip.Prefix
	TunID    OptUint64
	CTState  Masked32
	Metadata Masked64
}

// VLAN matches the VLAN tag. The zero value matches with and without tag.
type VLAN uint16

// NoVLAN matches packets without a tag (OFPVID_NONE).
const NoVLAN VLAN = 0x8000

// VLANID matches packets tagged with id (1 to 4094).
func VLANID(id uint16) VLAN { return VLAN(0x1000 | id&0xfff) }

// ID is the VLAN id; ok is false if v isn't made by VLANID.
func (v VLAN) ID() (id uint16, ok bool) { return uint16(v) & 0xfff, v&0x1000 != 0 }

// PortMask matches a transport port under a mask. Its zero value matches any.
type PortMask struct{ Value, Mask uint16 }

// ExactPort matches one transport port.
func ExactPort(p uint16) PortMask { return PortMask{p, 0xffff} }

// OptUint8 is a number that may be absent.
type OptUint8 struct {
	Value uint8
	Set   bool
}

// Uint8 is a present OptUint8.
func Uint8(v uint8) OptUint8 { return OptUint8{v, true} }

// OptUint64 is a number that may be absent.
type OptUint64 struct {
	Value uint64
	Set   bool
}

// Uint64 is a present OptUint64.
func Uint64(v uint64) OptUint64 { return OptUint64{v, true} }

// Masked32 is a value under a mask; a zero mask matches anything.
type Masked32 struct{ Value, Mask uint32 }

// Masked64 is a value under a mask; a zero mask matches anything.
type Masked64 struct{ Value, Mask uint64 }

// Host is the prefix that holds only a.
func Host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
