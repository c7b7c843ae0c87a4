package wire

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// match reads a match with its header and padding. It returns the bytes, which
// alias the input, and the decoded match; err is set if the match is well formed
// but uses something that flow can't say.
func (r *reader) match() (raw []byte, m flow.Match, err error) {
	if r.err != nil {
		return nil, m, r.err
	}
	all := r.b
	typ, n := r.u16(), int(r.u16())
	if r.err == nil && (typ != 1 || n < 4) {
		r.fail("match of type %d with %d bytes: %w", typ, n, ErrLength)
	}
	body := r.sub(n - 4)
	r.skip(pad8(n))
	if r.err != nil {
		return nil, m, r.err
	}
	m, err = decodeFields(body)
	if err != nil {
		m = flow.Match{}
	}
	return all[:n+pad8(n)], m, err
}

// DecodeMatch decodes a match with its header and padding, and nothing else.
func DecodeMatch(b []byte) (flow.Match, error) {
	r := &reader{b: b}
	_, m, err := r.match()
	if r.err == nil && len(r.b) > 0 {
		return flow.Match{}, fmt.Errorf("%d bytes after the match: %w", len(r.b), ErrLength)
	}
	return m, err
}

func decodeFields(r *reader) (flow.Match, error) {
	var m flow.Match
	seen := make([]Field, 0, 24)
	for r.more() {
		o := r.oxm()
		if r.err != nil {
			break
		}
		if slices.Contains(seen, o.field) {
			return m, fmt.Errorf("%v is there twice", o.field)
		}
		seen = append(seen, o.field)
		if err := decodeField(&m, o); err != nil {
			return m, err
		}
	}
	if r.err != nil {
		return m, r.err
	}
	return m, m.Validate()
}

// decodeField puts one field into m. A value that flow writes as "any" is an
// error, so that a match that is decoded means what the switch means.
func decodeField(m *flow.Match, o oxm) error {
	d, ok := fieldDecoders[o.field]
	if !ok {
		return fmt.Errorf("unknown %v", o.field)
	}
	if o.mask != nil && !d.masked {
		return fmt.Errorf("mask on %v", o.field)
	}
	if d.ethType != 0 && m.EthType != d.ethType {
		return fmt.Errorf("%v with Ethernet type 0x%04x", o.field, m.EthType)
	}
	if d.proto != 0 && m.IPProto != d.proto {
		return fmt.Errorf("%v with IP protocol %d", o.field, m.IPProto)
	}
	if !d.decode(m, o) {
		return fmt.Errorf("%v with value %x/%x", o.field, o.value, o.mask)
	}
	return nil
}

type fieldDecoder struct {
	masked  bool
	ethType uint16
	proto   uint8
	decode  func(m *flow.Match, o oxm) bool
}

var fieldDecoders = map[Field]fieldDecoder{
	FieldInPort: {decode: func(m *flow.Match, o oxm) bool {
		m.InPort = flow.NumberedPort(uint32(number(o.value)))
		return !m.InPort.IsZero()
	}},
	FieldMetadata: {masked: true, decode: func(m *flow.Match, o oxm) bool {
		v, mask, ok := masked(o)
		m.Metadata = flow.Masked64{Value: v, Mask: mask}
		return ok
	}},
	FieldEthDst: {decode: func(m *flow.Match, o oxm) bool { m.EthDst = model.MAC(o.value); return !m.EthDst.IsZero() }},
	FieldEthSrc: {decode: func(m *flow.Match, o oxm) bool { m.EthSrc = model.MAC(o.value); return !m.EthSrc.IsZero() }},
	FieldEthType: {decode: func(m *flow.Match, o oxm) bool {
		m.EthType = uint16(number(o.value))
		return m.EthType != 0
	}},
	FieldVLANVID: {decode: func(m *flow.Match, o oxm) bool {
		switch v := uint16(number(o.value)); {
		case v == 0:
			m.VLAN = flow.NoVLAN
		case v&^0xfff == VLANPresent:
			m.VLAN = flow.VLANID(v & 0xfff)
		default:
			return false
		}
		return true
	}},
	FieldIPProto: {ethType: flow.EthTypeIPv4, decode: func(m *flow.Match, o oxm) bool {
		m.IPProto = o.value[0]
		return m.IPProto != 0
	}},
	FieldIPv4Src:  {masked: true, ethType: flow.EthTypeIPv4, decode: prefix(func(m *flow.Match) *netip.Prefix { return &m.IPSrc })},
	FieldIPv4Dst:  {masked: true, ethType: flow.EthTypeIPv4, decode: prefix(func(m *flow.Match) *netip.Prefix { return &m.IPDst })},
	FieldARPSPA:   {masked: true, ethType: flow.EthTypeARP, decode: prefix(func(m *flow.Match) *netip.Prefix { return &m.ARPSPA })},
	FieldARPTPA:   {masked: true, ethType: flow.EthTypeARP, decode: prefix(func(m *flow.Match) *netip.Prefix { return &m.ARPTPA })},
	FieldTCPSrc:   {masked: true, proto: flow.ProtoTCP, decode: tpSrc},
	FieldTCPDst:   {masked: true, proto: flow.ProtoTCP, decode: tpDst},
	FieldUDPSrc:   {masked: true, proto: flow.ProtoUDP, decode: tpSrc},
	FieldUDPDst:   {masked: true, proto: flow.ProtoUDP, decode: tpDst},
	FieldSCTPSrc:  {masked: true, proto: flow.ProtoSCTP, decode: tpSrc},
	FieldSCTPDst:  {masked: true, proto: flow.ProtoSCTP, decode: tpDst},
	FieldICMPType: {ethType: flow.EthTypeIPv4, proto: flow.ProtoICMP, decode: func(m *flow.Match, o oxm) bool { m.ICMPType = flow.Uint8(o.value[0]); return true }},
	FieldICMPCode: {ethType: flow.EthTypeIPv4, proto: flow.ProtoICMP, decode: func(m *flow.Match, o oxm) bool { m.ICMPCode = flow.Uint8(o.value[0]); return true }},
	FieldARPOp: {ethType: flow.EthTypeARP, decode: func(m *flow.Match, o oxm) bool {
		m.ARPOp = uint16(number(o.value))
		return m.ARPOp != 0
	}},
	FieldTunnelID: {decode: func(m *flow.Match, o oxm) bool { m.TunID = flow.Uint64(number(o.value)); return true }},
	FieldCTState: {masked: true, decode: func(m *flow.Match, o oxm) bool {
		v, mask, ok := masked(o)
		m.CTState = flow.Masked32{Value: uint32(v), Mask: uint32(mask)}
		return ok
	}},
}

// masked gives value and mask; ok is false if the mask is empty or the value has
// bits outside it.
func masked(o oxm) (value, mask uint64, ok bool) {
	value, mask = number(o.value), ^uint64(0)>>(64-8*len(o.value))
	if o.mask != nil {
		mask = number(o.mask)
	}
	return value, mask, mask != 0 && value&^mask == 0
}

func prefix(field func(*flow.Match) *netip.Prefix) func(*flow.Match, oxm) bool {
	return func(m *flow.Match, o oxm) bool {
		_, mask, ok := masked(o)
		ones := bits.LeadingZeros32(^uint32(mask))
		if !ok || uint32(mask) != ^uint32(0)<<(32-ones) {
			return false
		}
		*field(m) = netip.PrefixFrom(netip.AddrFrom4([4]byte(o.value)), ones)
		return true
	}
}

func tpSrc(m *flow.Match, o oxm) bool {
	v, mask, ok := masked(o)
	m.TPSrc = flow.PortMask{Value: uint16(v), Mask: uint16(mask)}
	return ok
}

func tpDst(m *flow.Match, o oxm) bool {
	v, mask, ok := masked(o)
	m.TPDst = flow.PortMask{Value: uint16(v), Mask: uint16(mask)}
	return ok
}
