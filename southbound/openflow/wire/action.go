package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// Types of actions and instructions (OpenFlow 1.3.5, sections 7.2.4 and 7.2.5).
const (
	ActionOutput       uint16 = 0
	ActionPushVLAN     uint16 = 17
	ActionPopVLAN      uint16 = 18
	ActionGroup        uint16 = 22
	ActionSetField     uint16 = 25
	ActionExperimenter uint16 = 0xffff

	InstructionGoto  uint16 = 1
	InstructionApply uint16 = 4
)

// Subtypes of Nicira's actions and flags of ct and nat.
const (
	NiciraMove uint16 = 6
	NiciraLoad uint16 = 7
	NiciraCT   uint16 = 35
	NiciraNAT  uint16 = 36

	CTCommit   uint16 = 1
	CTNoTable  uint8  = 0xff
	NATFlagSrc uint16 = 1
	NATFlagDst uint16 = 2

	NATIPv4Min uint16 = 1 << 0
	NATIPv4Max uint16 = 1 << 1
	NATPortMin uint16 = 1 << 4
	NATPortMax uint16 = 1 << 5
)

// NoBuffer as MaxLen sends the whole packet to the controller.
const NoBuffer uint16 = 0xffff

// Controller is the port of the controller.
const Controller uint32 = 0xfffffffd

// DecodeInstructions decodes the instructions of a rule: what is applied and the
// table where the packet goes on (0: none).
func DecodeInstructions(b []byte) (actions []flow.Action, table uint8, err error) {
	r := &reader{b: b}
	last := uint16(0)
	for r.more() {
		typ, n := r.u16(), int(r.u16())
		if r.err == nil && (n < 8 || n%8 != 0) {
			r.fail("instruction of %d bytes: %w", n, ErrLength)
		}
		body := r.sub(n - 4)
		if r.err != nil {
			break
		}
		switch {
		case typ == InstructionApply && last == 0:
			body.skip(4)
			if !body.more() && body.err == nil {
				return nil, 0, fmt.Errorf("instruction that applies no action")
			}
			if actions, err = decodeActions(body); err != nil {
				return nil, 0, err
			}
		case typ == InstructionGoto && last != InstructionGoto:
			table = body.u8()
			body.skip(3)
			if body.err != nil || body.more() || table == 0 {
				return nil, 0, fmt.Errorf("goto_table of %d bytes to table %d: %w", n, table, ErrLength)
			}
		default:
			return nil, 0, fmt.Errorf("instruction of type %d after type %d", typ, last)
		}
		last = typ
	}
	if r.err != nil {
		return nil, 0, r.err
	}
	return actions, table, nil
}

// DecodeActions decodes a list of actions.
func DecodeActions(b []byte) ([]flow.Action, error) { return decodeActions(&reader{b: b}) }

func decodeActions(r *reader) ([]flow.Action, error) {
	var out []flow.Action
	for r.more() {
		typ, n := r.u16(), int(r.u16())
		if r.err == nil && (n < 8 || n%8 != 0) {
			r.fail("action of %d bytes: %w", n, ErrLength)
		}
		body := r.sub(n - 4)
		if r.err != nil {
			break
		}
		a, err := decodeAction(typ, body)
		if err != nil {
			return nil, fmt.Errorf("action of type %d: %w", typ, err)
		}
		out = append(out, a)
	}
	return out, r.err
}

// decodeAction decodes one action from what follows its type and length. All of
// body must be used.
func decodeAction(typ uint16, body *reader) (a flow.Action, err error) {
	switch typ {
	case ActionOutput:
		o := flow.Output{Port: flow.NumberedPort(body.u32()), MaxLen: body.u16()}
		body.skip(6)
		if o.Port.Number != Controller {
			o.MaxLen = 0
		}
		a = o
		if o.Port.IsZero() {
			body.fail("output to port 0")
		}
	case ActionGroup:
		a = flow.ToGroup{ID: body.u32()}
	case ActionPopVLAN:
		body.skip(4)
		a = flow.PopVLAN{}
	case ActionPushVLAN:
		if t := body.u16(); body.err == nil && t != flow.EthTypeVLAN {
			body.fail("push_vlan with Ethernet type 0x%04x", t)
		}
		body.skip(2)
		a = flow.PushVLAN{}
	case ActionSetField:
		a = decodeSetField(body)
	case ActionExperimenter:
		if v := body.u32(); body.err == nil && v != ExperimenterNicira {
			body.fail("action of experimenter 0x%08x", v)
		}
		a = decodeNicira(body)
	default:
		body.fail("unknown")
	}
	if body.more() {
		body.fail("%d bytes too many: %w", len(body.b), ErrLength)
	}
	if body.err != nil {
		return nil, body.err
	}
	return a, nil
}

var setFields = map[Field]flow.Field{
	FieldEthSrc: flow.FieldEthSrc, FieldEthDst: flow.FieldEthDst, FieldARPSHA: flow.FieldARPSHA, FieldARPTHA: flow.FieldARPTHA,
	FieldIPv4Src: flow.FieldIPSrc, FieldIPv4Dst: flow.FieldIPDst, FieldARPSPA: flow.FieldARPSPA, FieldARPTPA: flow.FieldARPTPA,
	FieldTunIPv4Dst: flow.FieldTunDst, FieldARPOp: flow.FieldARPOp, FieldTunnelID: flow.FieldTunID, FieldVLANVID: flow.FieldVLANVID,
	FieldMetadata: flow.FieldMetadata,
}

func decodeSetField(body *reader) flow.Action {
	o := body.oxm()
	if body.err != nil {
		return nil
	}
	if pad := body.rest(); len(pad) >= 8 {
		body.fail("set_field with %x after its field: %w", pad, ErrLength)
	}
	name, ok := setFields[o.field]
	if !ok || o.mask != nil {
		body.fail("set_field of %v, mask %x", o.field, o.mask)
		return nil
	}
	switch name {
	case flow.FieldEthSrc, flow.FieldEthDst, flow.FieldARPSHA, flow.FieldARPTHA:
		return flow.SetMAC{Field: name, MAC: model.MAC(o.value)}
	case flow.FieldARPOp, flow.FieldTunID, flow.FieldMetadata:
		return flow.SetUint{Field: name, Value: number(o.value)}
	case flow.FieldVLANVID:
		v := uint16(number(o.value))
		if v&^0xfff != VLANPresent {
			body.fail("set_field of VLAN_VID to 0x%04x", v)
		}
		return flow.SetUint{Field: name, Value: uint64(v & 0xfff)}
	default:
		return flow.SetIP{Field: name, IP: netip.AddrFrom4([4]byte(o.value))}
	}
}

func decodeNicira(body *reader) flow.Action {
	switch sub := body.u16(); {
	case body.err != nil:
	case sub == NiciraMove:
		return decodeMove(body)
	case sub == NiciraLoad:
		return decodeLoad(body)
	case sub == NiciraCT:
		return decodeCT(body)
	default:
		body.fail("Nicira's action %d", sub)
	}
	return nil
}

// Moves are the moves that flow can say.
var moves = map[[2]Field]flow.Move{
	{FieldNXMEthSrc, FieldNXMEthDst}: {From: flow.FieldEthSrc, To: flow.FieldEthDst},
	{FieldNXMIPSrc, FieldNXMIPDst}:   {From: flow.FieldIPSrc, To: flow.FieldIPDst},
	{FieldNXMARPSHA, FieldNXMARPTHA}: {From: flow.FieldARPSHA, To: flow.FieldARPTHA},
	{FieldNXMARPSPA, FieldNXMARPTPA}: {From: flow.FieldARPSPA, To: flow.FieldARPTPA},
}

func decodeMove(body *reader) flow.Action {
	bits, srcOfs, dstOfs := body.u16(), body.u16(), body.u16()
	src, dst := fieldOf(body.u32()), fieldOf(body.u32())
	m, ok := moves[[2]Field{src, dst}]
	if !ok || srcOfs != 0 || dstOfs != 0 || int(bits) != 8*int(src.Len) {
		body.fail("move of %d bits from %v, bit %d, to %v, bit %d", bits, src, srcOfs, dst, dstOfs)
	}
	return m
}

func decodeLoad(body *reader) flow.Action {
	ofsBits, dst, value := body.u16(), fieldOf(body.u32()), body.u64()
	l := flow.Load{Value: value}
	switch dst {
	case FieldNXMIPTTL:
		l.Field = flow.FieldIPTTL
	case FieldNXMICMPType:
		l.Field = flow.FieldICMPType
	default:
		body.fail("load into %v", dst)
	}
	if ofsBits != 7 || value > 0xff {
		body.fail("load of 0x%x into %v, bits 0x%x", value, dst, ofsBits)
	}
	return l
}

func fieldOf(header uint32) Field {
	if header&(1<<8) != 0 {
		return Field{Class: 0xffff}
	}
	return Field{uint16(header >> 16), uint8(header >> 9 & 0x7f), uint8(header)}
}

func decodeCT(body *reader) flow.Action {
	flags, zoneSrc, zone, table := body.u16(), body.u32(), body.u16(), body.u8()
	body.skip(3)
	alg := body.u16()
	if flags&^CTCommit != 0 || zoneSrc != 0 || alg != 0 || table == 0 {
		body.fail("ct with flags 0x%x, zone of field 0x%x, helper %d, table %d", flags, zoneSrc, alg, table)
	}
	ct := flow.CT{Commit: flags&CTCommit != 0, Zone: zone}
	if table != CTNoTable {
		ct.Table = table
	}
	if !body.more() {
		return ct
	}
	nested := &reader{b: body.rest(), err: body.err}
	typ, n := nested.u16(), int(nested.u16())
	nat := nested.sub(n - 4)
	vendor, sub := nat.u32(), nat.u16()
	if nested.err != nil || nested.more() || nat.err != nil || typ != ActionExperimenter || vendor != ExperimenterNicira || sub != NiciraNAT {
		body.fail("ct with something else in it than one nat")
		return ct
	}
	ct.NAT = decodeNAT(nat)
	if nat.err != nil {
		body.fail("ct: %w", nat.err)
	}
	return ct
}

func decodeNAT(r *reader) flow.NAT {
	r.skip(2)
	flags, present := r.u16(), r.u16()
	var n flow.NAT
	switch flags {
	case 0:
		n.Kind = flow.NATKnown
	case NATFlagSrc:
		n.Kind = flow.NATSource
	case NATFlagDst:
		n.Kind = flow.NATDestination
	default:
		r.fail("nat with flags 0x%x", flags)
	}
	if present&^(NATIPv4Min|NATIPv4Max|NATPortMin|NATPortMax) != 0 {
		r.fail("nat with ranges 0x%x", present)
	}
	if present&NATIPv4Min != 0 {
		n.IPMin = addr4(r)
	}
	if present&NATIPv4Max != 0 {
		n.IPMax = addr4(r)
	}
	if present&NATPortMin != 0 {
		n.PortMin = r.u16()
	}
	if present&NATPortMax != 0 {
		n.PortMax = r.u16()
	}
	// A range that has a beginning only is one address or port (ovs-ofctl sends it
	// so); what both ends say is the same rule.
	if present&NATIPv4Min != 0 && present&NATIPv4Max == 0 {
		n.IPMax = n.IPMin
	}
	if present&NATPortMin != 0 && present&NATPortMax == 0 {
		n.PortMax = n.PortMin
	}
	if present&NATPortMin != 0 && n.PortMin == 0 || present&NATPortMax != 0 && n.PortMax == 0 {
		r.fail("nat with a range that starts or ends at port 0")
	}
	if pad := r.rest(); len(pad) >= 8 || len(bytes.Trim(pad, "\x00")) > 0 {
		r.fail("nat with %x after its ranges", pad)
	}
	return n
}

func addr4(r *reader) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], r.u32())
	return netip.AddrFrom4(b)
}
