package openflow

import (
	"encoding/binary"
	"net/netip"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

var be = binary.BigEndian

// appendMatch appends m, which is valid and has its port's number, with its
// padding. Fields come in the order of their numbers, which has each after its
// prerequisites.
func appendMatch(b []byte, m *flow.Match) []byte {
	start := len(b)
	b = append(b, 0, 1, 0, 0) // OFPMT_OXM; the length follows
	if !m.InPort.IsZero() {
		b = be.AppendUint32(appendField(b, wire.FieldInPort), m.InPort.Number)
	}
	b = appendMasked64(b, wire.FieldMetadata, m.Metadata)
	b = appendMAC(b, wire.FieldEthDst, m.EthDst)
	b = appendMAC(b, wire.FieldEthSrc, m.EthSrc)
	b = appendUint16(b, m.EthType != 0, wire.FieldEthType, m.EthType)
	if id, ok := m.VLAN.ID(); ok {
		b = appendUint16(b, true, wire.FieldVLANVID, wire.VLANPresent|id)
	} else {
		b = appendUint16(b, m.VLAN == flow.NoVLAN, wire.FieldVLANVID, 0)
	}
	b = appendUint8(b, m.IPProto != 0, wire.FieldIPProto, m.IPProto)
	b = appendPrefix(b, wire.FieldIPv4Src, m.IPSrc)
	b = appendPrefix(b, wire.FieldIPv4Dst, m.IPDst)
	if src, dst, ok := portFields(m.IPProto); ok {
		b = appendPortMask(b, src, m.TPSrc)
		b = appendPortMask(b, dst, m.TPDst)
	}
	b = appendUint8(b, m.ICMPType.Set, wire.FieldICMPType, m.ICMPType.Value)
	b = appendUint8(b, m.ICMPCode.Set, wire.FieldICMPCode, m.ICMPCode.Value)
	b = appendUint16(b, m.ARPOp != 0, wire.FieldARPOp, m.ARPOp)
	b = appendPrefix(b, wire.FieldARPSPA, m.ARPSPA)
	b = appendPrefix(b, wire.FieldARPTPA, m.ARPTPA)
	if m.TunID.Set {
		b = be.AppendUint64(appendField(b, wire.FieldTunnelID), m.TunID.Value)
	}
	b = appendMasked32(b, wire.FieldCTState, m.CTState)
	be.PutUint16(b[start+2:], uint16(len(b)-start))
	return pad8(b, start)
}

// appendField and appendMaskedField append the head of a field whose value, or
// value and mask, follow.
func appendField(b []byte, f wire.Field) []byte { return be.AppendUint32(b, f.Header()) }

func appendMaskedField(b []byte, f wire.Field) []byte {
	f.Len *= 2
	return be.AppendUint32(b, f.Header()|1<<8)
}

func appendUint8(b []byte, set bool, f wire.Field, v uint8) []byte {
	if !set {
		return b
	}
	return append(appendField(b, f), v)
}

func appendUint16(b []byte, set bool, f wire.Field, v uint16) []byte {
	if !set {
		return b
	}
	return be.AppendUint16(appendField(b, f), v)
}

func appendMAC(b []byte, f wire.Field, m model.MAC) []byte {
	if m.IsZero() {
		return b
	}
	return append(appendField(b, f), m[:]...)
}

// The mask of a field is left out where it has all bits set, as Open vSwitch does.

func appendPrefix(b []byte, f wire.Field, p netip.Prefix) []byte {
	if !p.IsValid() {
		return b
	}
	a := p.Addr().As4()
	if p.Bits() == 32 {
		return append(appendField(b, f), a[:]...)
	}
	b = append(appendMaskedField(b, f), a[:]...)
	return be.AppendUint32(b, ^uint32(0)<<(32-p.Bits()))
}

func appendPortMask(b []byte, f wire.Field, p flow.PortMask) []byte {
	switch p.Mask {
	case 0:
		return b
	case 0xffff:
		return be.AppendUint16(appendField(b, f), p.Value)
	}
	return be.AppendUint16(be.AppendUint16(appendMaskedField(b, f), p.Value), p.Mask)
}

func appendMasked32(b []byte, f wire.Field, m flow.Masked32) []byte {
	switch m.Mask {
	case 0:
		return b
	case 1<<32 - 1:
		return be.AppendUint32(appendField(b, f), m.Value)
	}
	return be.AppendUint32(be.AppendUint32(appendMaskedField(b, f), m.Value), m.Mask)
}

func appendMasked64(b []byte, f wire.Field, m flow.Masked64) []byte {
	switch m.Mask {
	case 0:
		return b
	case 1<<64 - 1:
		return be.AppendUint64(appendField(b, f), m.Value)
	}
	return be.AppendUint64(be.AppendUint64(appendMaskedField(b, f), m.Value), m.Mask)
}

// portFields are the fields of the ports of a protocol.
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

// pad8 fills what begins at start up to a multiple of 8 bytes.
func pad8(b []byte, start int) []byte {
	for (len(b)-start)%8 != 0 {
		b = append(b, 0)
	}
	return b
}
