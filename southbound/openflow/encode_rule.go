package openflow

import (
	"fmt"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// Lengths of the parts of a FLOW_MOD.
const (
	flowModFixedLen  = 48 // header and fixed part, before the match
	instructionLen   = 8  // of goto_table, and of apply_actions without actions
	flowSendRemoved  = 1  // OFPFF_SEND_FLOW_REM
	noBuffer         = 1<<32 - 1
	ordinaryRuleRoom = 256
)

// Commands of a FLOW_MOD.
const (
	flowAdd          = 0
	flowDelete       = 3
	flowDeleteStrict = 4
)

// Encoder encodes rules one after the other, each into the same memory, and packs
// messages into few pieces of memory. It is not safe for concurrent use.
//
// Rules are encoded here and not by libOpenflow because they come in tens of
// thousands: the library makes an object of each field and action and a slice of
// each object, 47 for one rule, and encoding took longer than the switch needed to
// install the rules. The tests compare both for every kind of rule.
type Encoder struct {
	rule []byte // of the last Rule
	slab []byte // the rest of it is free
}

// maxSlab is how much memory for messages is taken at once at most. The first
// messages take less, so that a small change pays for no more than it needs.
const maxSlab = 32 << 10

// Rule encodes match and instructions of r. What it returns is valid until the
// next call. It fails if a port is still a name, if r isn't valid or if r is too
// large.
func (x *Encoder) Rule(r flow.Rule) (EncodedRule, error) {
	if err := r.Validate(); err != nil {
		return EncodedRule{}, err
	}
	if r.Match.InPort.Name != "" {
		return EncodedRule{}, fmt.Errorf("rule %s: port %q has no number", r, r.Match.InPort.Name)
	}
	if x.rule == nil {
		x.rule = make([]byte, 0, ordinaryRuleRoom)
	}
	b := appendMatch(x.rule[:0], &r.Match)
	n := len(b)
	b, err := appendInstructions(b, r.Actions, r.Goto)
	if size := flowModFixedLen + len(b); err == nil && size > maxMessage {
		err = fmt.Errorf("flow-mod of %d bytes: %w", size, ErrTooLarge)
	}
	if err != nil {
		return EncodedRule{}, fmt.Errorf("rule %s: %w", r, err)
	}
	x.rule = b
	return EncodedRule{Table: r.Table, Priority: r.Priority, Match: b[:n:n], Instructions: b[n:]}, nil
}

// AddFlow adds a rule or replaces the one with the same table, priority and
// match.
func (x *Encoder) AddFlow(e EncodedRule, cookie uint64) Message {
	n := flowModFixedLen + len(e.Match) + len(e.Instructions)
	if cap(x.slab)-len(x.slab) < n {
		x.slab = make([]byte, 0, max(n, min(4*cap(x.slab), maxSlab)))
	}
	start := len(x.slab)
	x.slab = appendAddFlow(x.slab, e, cookie)
	return Message{x.slab[start:len(x.slab):len(x.slab)]}
}

// EncodeRule is Encoder.Rule for a single rule.
func EncodeRule(r flow.Rule) (EncodedRule, error) { return new(Encoder).Rule(r) }

// AddFlow is Encoder.AddFlow for a single rule.
func AddFlow(e EncodedRule, cookie uint64) Message { return Message{appendAddFlow(nil, e, cookie)} }

func appendAddFlow(b []byte, e EncodedRule, cookie uint64) []byte {
	return appendFlowMod(b, flowMod{command: flowAdd, table: e.Table, priority: e.Priority, cookie: cookie,
		flags: flowSendRemoved, match: e.Match, instructions: e.Instructions})
}

// emptyMatch matches every packet.
var emptyMatch = []byte{0, 1, 0, 4, 0, 0, 0, 0}

// DeleteFlows deletes the rules of a table (0xff: of all tables) whose cookie is
// equal under mask.
func DeleteFlows(table uint8, cookie, mask uint64) Message {
	return Message{appendFlowMod(nil, flowMod{command: flowDelete, table: table, cookie: cookie, mask: mask, match: emptyMatch})}
}

// DeleteStrict deletes the rule with e's table, priority and match.
func DeleteStrict(e EncodedRule) Message {
	return Message{appendFlowMod(nil, flowMod{command: flowDeleteStrict, table: e.Table, priority: e.Priority, match: e.Match})}
}

// flowMod is what differs between flow-mods.
type flowMod struct {
	command, table      uint8
	priority, flags     uint16
	cookie, mask        uint64
	match, instructions []byte
}

// appendFlowMod appends a flow-mod, which is not larger than maxMessage, with
// transaction id 0.
func appendFlowMod(b []byte, f flowMod) []byte {
	size := flowModFixedLen + len(f.match) + len(f.instructions)
	b = be.AppendUint16(append(b, wire.Version, wire.TypeFlowMod), uint16(size))
	b = append(b, 0, 0, 0, 0)
	b = be.AppendUint64(be.AppendUint64(b, f.cookie), f.mask)
	b = append(b, f.table, f.command, 0, 0, 0, 0) // no timeouts
	b = be.AppendUint16(b, f.priority)
	b = be.AppendUint32(b, noBuffer)
	b = be.AppendUint32(be.AppendUint32(b, wire.AnyPort), wire.AnyGroup) // deletes have no further filter
	b = append(be.AppendUint16(b, f.flags), 0, 0)
	return append(append(b, f.match...), f.instructions...)
}

// appendInstructions appends what a rule does. The length of the actions counts
// with 16 bits: whoever calls refuses what is too large.
func appendInstructions(b []byte, actions []flow.Action, table uint8) ([]byte, error) {
	if len(actions) > 0 {
		start := len(b)
		b = append(b, 0, byte(wire.InstructionApply), 0, 0, 0, 0, 0, 0)
		var err error
		for _, a := range actions {
			if b, err = appendAction(b, a); err != nil {
				return nil, err
			}
		}
		be.PutUint16(b[start+2:], uint16(len(b)-start))
	}
	if table != 0 {
		b = append(b, 0, byte(wire.InstructionGoto), 0, instructionLen, table, 0, 0, 0)
	}
	return b, nil
}

// appendBundleAdd appends m as a message of a bundle. The transaction ids of both
// must be equal.
func appendBundleAdd(b []byte, xid, id uint32, m Message) []byte {
	b = be.AppendUint16(append(b, wire.Version, wire.TypeExperimenter), uint16(bundleAddLen+len(m.bytes)))
	b = be.AppendUint32(b, xid)
	b = be.AppendUint32(be.AppendUint32(b, wire.ExperimenterONF), wire.ONFBundleAdd)
	b = append(be.AppendUint32(b, id), 0, 0)
	return appendMessage(be.AppendUint16(b, bundleFlags), xid, m)
}
