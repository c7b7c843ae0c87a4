package openflow

import (
	"encoding/binary"
	"net/netip"

	ofp "github.com/contiv/libOpenflow/openflow13"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// value is the bytes of a field, for the library.
type value []byte

// Len implements the library's util.Message.
func (v value) Len() uint16 { return uint16(len(v)) }

// MarshalBinary implements the library's util.Message.
func (v value) MarshalBinary() ([]byte, error) { return v, nil }

// UnmarshalBinary implements the library's util.Message.
func (v value) UnmarshalBinary([]byte) error { return errDecode }

func u8(n uint8) value   { return value{n} }
func u16(n uint16) value { return binary.BigEndian.AppendUint16(nil, n) }
func u32(n uint32) value { return binary.BigEndian.AppendUint32(nil, n) }
func u64(n uint64) value { return binary.BigEndian.AppendUint64(nil, n) }

func ip4(a netip.Addr) value { b := a.As4(); return b[:] }

// field builds a field for a match (or, without mask, for set_field). The
// library's own constructors know no mask for transport ports and ARP addresses,
// no ICMP fields, and set OFPVID_PRESENT for "no tag" too.
func field(f wire.Field, v, mask value) ofp.MatchField {
	m := ofp.MatchField{Class: f.Class, Field: f.Number, Length: f.Len, Value: v}
	if mask != nil {
		m.HasMask, m.Mask, m.Length = true, mask, 2*f.Len
	}
	return m
}

// encodeMatch encodes m, which is valid and has its port's number. Fields come in
// the order of their numbers, which has each after its prerequisites.
func encodeMatch(m flow.Match) *ofp.Match {
	out := ofp.NewMatch()
	add := func(set bool, f wire.Field, v, mask value) {
		if set {
			out.AddField(field(f, v, mask))
		}
	}
	add(!m.InPort.IsZero(), wire.FieldInPort, u32(m.InPort.Number), nil)
	add(m.Metadata.Mask != 0, wire.FieldMetadata, u64(m.Metadata.Value), maskUnlessFull(u64(m.Metadata.Mask)))
	add(!m.EthDst.IsZero(), wire.FieldEthDst, m.EthDst[:], nil)
	add(!m.EthSrc.IsZero(), wire.FieldEthSrc, m.EthSrc[:], nil)
	add(m.EthType != 0, wire.FieldEthType, u16(m.EthType), nil)
	if id, ok := m.VLAN.ID(); ok {
		add(true, wire.FieldVLANVID, u16(wire.VLANPresent|id), nil)
	} else {
		add(m.VLAN == flow.NoVLAN, wire.FieldVLANVID, u16(0), nil)
	}
	add(m.IPProto != 0, wire.FieldIPProto, u8(m.IPProto), nil)
	addPrefix(out, wire.FieldIPv4Src, m.IPSrc)
	addPrefix(out, wire.FieldIPv4Dst, m.IPDst)
	if src, dst, ok := portFields(m.IPProto); ok {
		add(m.TPSrc.Mask != 0, src, u16(m.TPSrc.Value), maskUnlessFull(u16(m.TPSrc.Mask)))
		add(m.TPDst.Mask != 0, dst, u16(m.TPDst.Value), maskUnlessFull(u16(m.TPDst.Mask)))
	}
	add(m.ICMPType.Set, wire.FieldICMPType, u8(m.ICMPType.Value), nil)
	add(m.ICMPCode.Set, wire.FieldICMPCode, u8(m.ICMPCode.Value), nil)
	add(m.ARPOp != 0, wire.FieldARPOp, u16(m.ARPOp), nil)
	addPrefix(out, wire.FieldARPSPA, m.ARPSPA)
	addPrefix(out, wire.FieldARPTPA, m.ARPTPA)
	add(m.TunID.Set, wire.FieldTunnelID, u64(m.TunID.Value), nil)
	add(m.CTState.Mask != 0, wire.FieldCTState, u32(m.CTState.Value), maskUnlessFull(u32(m.CTState.Mask)))
	return out
}

// addPrefix adds an address. A whole address goes without mask, as Open vSwitch
// writes it.
func addPrefix(m *ofp.Match, f wire.Field, p netip.Prefix) {
	if p.IsValid() {
		m.AddField(field(f, ip4(p.Addr()), maskUnlessFull(u32(^uint32(0)<<(32-p.Bits())))))
	}
}

// maskUnlessFull is mask, or nil if it has all bits set.
func maskUnlessFull(mask value) value {
	for _, b := range mask {
		if b != 0xff {
			return mask
		}
	}
	return nil
}

func portFields(proto uint8) (src, dst wire.Field, ok bool) {
	switch proto {
	case flow.ProtoTCP:
		return wire.FieldTCPSrc, wire.FieldTCPDst, true
	case flow.ProtoUDP:
		return wire.FieldUDPSrc, wire.FieldUDPDst, true
	case flow.ProtoSCTP:
		return wire.FieldSCTPSrc, wire.FieldSCTPDst, true
	}
	return wire.Field{}, wire.Field{}, false
}
