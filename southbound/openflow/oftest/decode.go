package oftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// undecodable is a message that a switch refuses because it can't decode it.
type undecodable struct {
	Refusal
	err error
}

func (e undecodable) Error() string { return e.err.Error() }

// The errors that Open vSwitch answers to what it can't decode, roughly.
var (
	badLength      = Refusal{Type: 1, Code: 6, AtAdd: true} // BAD_REQUEST/BAD_LEN
	badMatch       = Refusal{Type: 4, Code: 9, AtAdd: true} // BAD_MATCH/BAD_PREREQ
	badInstruction = Refusal{Type: 3, Code: 2, AtAdd: true} // BAD_INSTRUCTION/BAD_TABLE_ID
)

// refusalOf is the error with which a switch answers a message that it can't
// decode.
func refusalOf(err error) *Refusal {
	r := badLength
	var u undecodable
	if errors.As(err, &u) {
		r = u.Refusal
	}
	return &r
}

// decodeMod decodes a flow-mod, group-mod or packet-out, which it copies.
func decodeMod(h wire.Header, msg []byte) (Mod, error) {
	b := slices.Clone(msg)
	m := Mod{Type: h.Type, xid: h.XID, raw: b}
	var err error
	switch h.Type {
	case wire.TypeFlowMod:
		err = m.decodeFlowMod(b)
	case wire.TypeGroupMod:
		err = m.decodeGroupMod(b)
	case wire.TypePacketOut:
		err = m.decodePacketOut(b)
	default:
		err = fmt.Errorf("message of type %d: %w", h.Type, errGarbage)
	}
	return m, err
}

func (m *Mod) decodeFlowMod(b []byte) error {
	if len(b) < 56 {
		return fmt.Errorf("flow-mod of %d bytes: %w", len(b), errGarbage)
	}
	m.Cookie, m.Mask = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	m.Rule.Table, m.Command = b[24], uint16(b[25])
	m.Rule.Priority = binary.BigEndian.Uint16(b[30:])
	m.flags = binary.BigEndian.Uint16(b[44:])
	n := (int(binary.BigEndian.Uint16(b[50:])) + 7) &^ 7
	if n < 8 || 48+n > len(b) {
		return fmt.Errorf("flow-mod with a match of %d bytes: %w", n, errGarbage)
	}
	m.match, m.instructions = b[48:48+n], b[48+n:]
	var err error
	if m.Rule.Match, err = wire.DecodeMatch(m.match); err != nil {
		return undecodable{badMatch, fmt.Errorf("flow-mod: %w", err)}
	}
	if m.Rule.Actions, m.Rule.Goto, err = wire.DecodeInstructions(m.instructions); err != nil {
		return undecodable{badInstruction, fmt.Errorf("flow-mod: %w", err)}
	}
	if m.Rule.Goto != 0 && m.Rule.Goto <= m.Rule.Table {
		return undecodable{badInstruction, fmt.Errorf("flow-mod of table %d with goto_table:%d", m.Rule.Table, m.Rule.Goto)}
	}
	if m.Command != FlowAdd && len(m.instructions) > 0 {
		return fmt.Errorf("flow-mod that deletes, with instructions: %w", errGarbage)
	}
	if m.Command == FlowDelete && m.Rule.Match != (flow.Match{}) {
		return fmt.Errorf("flow-mod that deletes by a match: not simulated")
	}
	return nil
}

func (m *Mod) decodeGroupMod(b []byte) error {
	if len(b) < 16 {
		return fmt.Errorf("group-mod of %d bytes: %w", len(b), errGarbage)
	}
	m.Command = binary.BigEndian.Uint16(b[8:])
	m.Group.Type, m.Group.ID = flow.GroupType(b[10]), binary.BigEndian.Uint32(b[12:])
	m.buckets = b[16:]
	var err error
	m.Group.Buckets, err = wire.DecodeBuckets(m.buckets)
	return err
}

func (m *Mod) decodePacketOut(b []byte) error {
	if len(b) < 24 {
		return fmt.Errorf("packet-out of %d bytes: %w", len(b), errGarbage)
	}
	n := int(binary.BigEndian.Uint16(b[16:]))
	if 24+n > len(b) {
		return fmt.Errorf("packet-out with %d bytes of actions: %w", n, errGarbage)
	}
	actions, err := wire.DecodeActions(b[24 : 24+n])
	if err != nil {
		return fmt.Errorf("packet-out: %w", err)
	}
	if len(actions) == 1 {
		if o, ok := actions[0].(flow.Output); ok {
			m.Packet = PacketOut{o.Port.Number, b[24+n:]}
			return nil
		}
	}
	return fmt.Errorf("packet-out with other actions than one output: not simulated")
}
