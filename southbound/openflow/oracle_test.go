package openflow

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	ofp "github.com/contiv/libOpenflow/openflow13"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// This file encodes rules with libOpenflow, for comparison with what Encoder makes.
// What is mended here of the library:
//
//   - FlowMod writes out_port in the place of out_group, so that a delete with a
//     filter deletes nothing or everything: libraryFlowMod writes both.
//   - FlowMod leaves the instructions of a delete out of the length of the header
//     but sends them all the same, which the switch reads as the next message:
//     deletes are built without them.

// libraryRule is EncodeRule by the library.
func libraryRule(r flow.Rule) (EncodedRule, error) {
	e := EncodedRule{Table: r.Table, Priority: r.Priority}
	var err error
	if e.Match, err = marshal("match", encodeMatch(r.Match)); err != nil {
		return EncodedRule{}, err
	}
	e.Instructions, err = encodeInstructions(r, flowModFixedLen+len(e.Match))
	return e, err
}

// libraryAddFlow is AddFlow by the library, and libraryBundleAdd puts it into a
// bundle.
func libraryAddFlow(e EncodedRule, cookie uint64) Message {
	f := ofp.NewFlowMod()
	f.Command, f.TableId, f.Priority, f.Cookie = ofp.FC_ADD, e.Table, e.Priority, cookie
	f.Flags = ofp.FF_SEND_FLOW_REM
	return must(libraryFlowMod(f, e.Match, e.Instructions))
}

func libraryDeleteFlows(table uint8, cookie, mask uint64) Message {
	f := ofp.NewFlowMod()
	f.Command, f.TableId, f.Priority, f.Cookie, f.CookieMask = ofp.FC_DELETE, table, 0, cookie, mask
	return must(libraryFlowMod(f, emptyMatch, nil))
}

func libraryDeleteStrict(e EncodedRule) Message {
	f := ofp.NewFlowMod()
	f.Command, f.TableId, f.Priority = ofp.FC_DELETE_STRICT, e.Table, e.Priority
	return must(libraryFlowMod(f, e.Match, nil))
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

// encodeInstructions encodes what r does. before is the length of what stands
// before it in a flow-mod.
func encodeInstructions(r flow.Rule, before int) ([]byte, error) {
	var out []byte
	if len(r.Actions) > 0 {
		actions, size, err := encodeActions(r.Actions)
		if err != nil {
			return nil, err
		}
		if size += before + instructionLen + 8; size > maxMessage {
			return nil, fmt.Errorf("flow-mod of %d bytes: %w", size, ErrTooLarge)
		}
		apply := ofp.NewInstrApplyActions()
		apply.Actions = actions
		apply.Length = apply.Len()
		if out, err = marshal("list of actions", apply); err != nil {
			return nil, err
		}
	}
	if r.Goto != 0 {
		b, err := marshal("goto_table", ofp.NewInstrGotoTable(r.Goto))
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// Offsets in a FLOW_MOD.
const (
	flowModOutPort  = 36
	flowModOutGroup = 40
)

// libraryFlowMod encodes a flow-mod whose match and instructions are encoded already.
func libraryFlowMod(f *ofp.FlowMod, match, instructions []byte) (Message, error) {
	size := flowModFixedLen + len(match) + len(instructions)
	if size > maxMessage {
		return Message{}, fmt.Errorf("flow-mod of %d bytes: %w", size, ErrTooLarge)
	}
	fixed, err := marshal("flow-mod", f) // with an empty match, which is cut off
	if err != nil {
		return Message{}, err
	}
	b := make([]byte, 0, size)
	b = append(b, fixed[:flowModFixedLen]...)
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	binary.BigEndian.PutUint32(b[4:], 0)
	binary.BigEndian.PutUint32(b[flowModOutPort:], f.OutPort)
	binary.BigEndian.PutUint32(b[flowModOutGroup:], f.OutGroup)
	b = append(b, match...)
	b = append(b, instructions...)
	return finish("flow-mod", b)
}

// libraryBundleAdd adds m to a bundle. The transaction ids of both messages must be
// equal.
func libraryBundleAdd(xid, id uint32, m Message) ([]byte, error) {
	inner := appendMessage(nil, xid, m)
	add := ofp.NewBundleAdd(&ofp.BundleAdd{BundleID: id, Flags: bundleFlags, Message: value(inner)})
	add.Header.Xid = xid
	return marshal("message of a bundle", add)
}
