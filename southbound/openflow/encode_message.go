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
