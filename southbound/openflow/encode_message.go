package openflow

import (
	"fmt"

	ofp "github.com/contiv/libOpenflow/openflow13"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// bundleAddLen is what a bundle adds to the length of a message in it, and
// maxMessage the length of the largest message that fits into a bundle.
const (
	bundleAddLen = 24
	maxMessage   = wire.MaxLen - bundleAddLen
)

// applyActionsLen is the length of an APPLY_ACTIONS instruction without actions.
const applyActionsLen = 8

// EncodeRule encodes match and instructions of r. It fails if a port is still a
// name, if r isn't valid or if r is too large.
func EncodeRule(r flow.Rule) (EncodedRule, error) {
	if err := r.Validate(); err != nil {
		return EncodedRule{}, err
	}
	if r.Match.InPort.Name != "" {
		return EncodedRule{}, fmt.Errorf("rule %s: port %q has no number", r, r.Match.InPort.Name)
	}
	e := EncodedRule{Table: r.Table, Priority: r.Priority}
	var err error
	if e.Match, err = marshal("match", encodeMatch(r.Match)); err != nil {
		return EncodedRule{}, fmt.Errorf("rule %s: %w", r, err)
	}
	if e.Instructions, err = encodeInstructions(r, flowModFixedLen+len(e.Match)); err != nil {
		return EncodedRule{}, fmt.Errorf("rule %s: %w", r, err)
	}
	return e, nil
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
		if size += before + applyActionsLen + 8; size > maxMessage {
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

// AddFlow adds a rule or replaces the one with the same table, priority and
// match.
func AddFlow(e EncodedRule, cookie uint64) Message {
	f := ofp.NewFlowMod()
	f.Command, f.TableId, f.Priority, f.Cookie = ofp.FC_ADD, e.Table, e.Priority, cookie
	f.Flags = ofp.FF_SEND_FLOW_REM
	return must(flowMod(f, e.Match, e.Instructions))
}

// emptyMatch matches every packet.
var emptyMatch = []byte{0, 1, 0, 4, 0, 0, 0, 0}

// DeleteFlows deletes the rules of a table (0xff: of all tables) whose cookie is
// equal under mask.
func DeleteFlows(table uint8, cookie, mask uint64) Message {
	f := ofp.NewFlowMod()
	f.Command, f.TableId, f.Priority, f.Cookie, f.CookieMask = ofp.FC_DELETE, table, 0, cookie, mask
	return must(flowMod(f, emptyMatch, nil))
}

// DeleteStrict deletes the rule with e's table, priority and match.
func DeleteStrict(e EncodedRule) Message {
	f := ofp.NewFlowMod()
	f.Command, f.TableId, f.Priority = ofp.FC_DELETE_STRICT, e.Table, e.Priority
	return must(flowMod(f, e.Match, nil))
}

// AddGroup adds a group.
func AddGroup(g flow.Group) (Message, error) { return groupMod(ofp.OFPGC_ADD, g) }

// ModifyGroup gives an existing group other buckets.
func ModifyGroup(g flow.Group) (Message, error) { return groupMod(ofp.OFPGC_MODIFY, g) }

// DeleteGroup deletes a group, and with it the rules that use it.
func DeleteGroup(id uint32) Message {
	return must(groupMod(ofp.OFPGC_DELETE, flow.Group{ID: id}))
}

// Lengths of a GROUP_MOD and of a bucket without what follows.
const (
	groupModFixedLen = 16
	bucketFixedLen   = 16
)

func groupMod(command uint16, g flow.Group) (Message, error) {
	if err := g.Validate(); err != nil {
		return Message{}, err
	}
	m := ofp.NewGroupMod()
	m.Command, m.Type, m.GroupId, m.Xid = command, uint8(g.Type), g.ID, 0
	size := groupModFixedLen
	for i, b := range g.Buckets {
		bucket := ofp.NewBucket()
		bucket.Weight = b.Weight
		actions, n, err := encodeActions(b.Actions)
		if err != nil {
			return Message{}, fmt.Errorf("group 0x%08x, bucket %d: %w", g.ID, i, err)
		}
		if size += bucketFixedLen + n; size > maxMessage {
			return Message{}, fmt.Errorf("group 0x%08x with %d buckets: %w", g.ID, len(g.Buckets), ErrTooLarge)
		}
		bucket.Actions = actions
		m.AddBucket(*bucket)
	}
	b, err := marshal("group-mod", m)
	if err != nil {
		return Message{}, fmt.Errorf("group 0x%08x: %w", g.ID, err)
	}
	return finish("group-mod", b)
}

// packetOutFixedLen is the length of a PACKET_OUT with one output action and no
// frame.
const packetOutFixedLen = 24 + 16

// PacketOut sends a frame out of a port.
func PacketOut(port flow.Port, frame []byte) (Message, error) {
	if port.Name != "" || port.IsZero() {
		return Message{}, fmt.Errorf("packet-out to port %s: the port has no number", port)
	}
	if n := packetOutFixedLen + len(frame); n > maxMessage {
		return Message{}, fmt.Errorf("packet-out of %d bytes: %w", n, ErrTooLarge)
	}
	m := ofp.NewPacketOut()
	m.InPort, m.Data, m.Xid = flow.Controller.Number, value(frame), 0
	out := ofp.NewActionOutput(port.Number)
	out.MaxLen = 0
	m.AddAction(out)
	b, err := marshal("packet-out", m)
	if err != nil {
		return Message{}, err
	}
	return finish("packet-out", b)
}

const bundleFlags = wire.BundleAtomic | wire.BundleOrdered

// bundleControl opens, closes, commits or discards a bundle.
func bundleControl(xid, id uint32, typ uint16) ([]byte, error) {
	m := ofp.NewBundleControl(&ofp.BundleControl{BundleID: id, Type: typ, Flags: bundleFlags})
	m.Header.Xid = xid
	return marshal("bundle control message", m)
}

// bundleAdd adds m to a bundle. The transaction ids of both messages must be
// equal.
func bundleAdd(xid, id uint32, m Message) ([]byte, error) {
	inner := appendMessage(nil, xid, m)
	add := ofp.NewBundleAdd(&ofp.BundleAdd{BundleID: id, Flags: bundleFlags, Message: value(inner)})
	add.Header.Xid = xid
	return marshal("message of a bundle", add)
}
