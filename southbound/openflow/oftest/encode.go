package oftest

import (
	"encoding/binary"
	"time"

	"kvnet/model"
	"kvnet/southbound/openflow/wire"
)

var be = binary.BigEndian

// message makes a message of a type with a body.
func message(typ uint8, xid uint32, body []byte) []byte {
	b := []byte{wire.Version, typ}
	b = be.AppendUint16(b, uint16(wire.HeaderLen+len(body)))
	b = be.AppendUint32(b, xid)
	return append(b, body...)
}

func errorMessage(xid uint32, r Refusal, refused []byte) []byte {
	b := be.AppendUint16(nil, r.Type)
	b = be.AppendUint16(b, r.Code)
	if r.Type == wire.ErrorExperimenter {
		b = be.AppendUint32(b, wire.ExperimenterONF)
	}
	return message(wire.TypeError, xid, append(b, refused[:min(len(refused), 64)]...))
}

func features(xid uint32, d model.DPID) []byte {
	b := be.AppendUint64(nil, uint64(d))
	b = append(b, 0, 0, 0, 0, 254, 0, 0, 0)
	return message(wire.TypeFeaturesReply, xid, append(b, 0, 0, 0, 0x4f, 0, 0, 0, 0))
}

func appendPort(b []byte, p model.SwitchPort) []byte {
	b = be.AppendUint32(b, p.Number)
	b = append(b, 0, 0, 0, 0)
	b = append(b, p.MAC[:]...)
	b = append(b, 0, 0)
	var name [16]byte
	copy(name[:15], p.Name)
	b = append(b, name[:]...)
	state := uint32(0)
	if !p.Enabled {
		state = 1
	}
	b = be.AppendUint32(b, 0)
	b = be.AppendUint32(b, state)
	return append(b, make([]byte, 24)...)
}

func portStatus(reason uint8, p model.SwitchPort) []byte {
	return message(wire.TypePortStatus, 0, appendPort([]byte{reason, 0, 0, 0, 0, 0, 0, 0}, p))
}

func packetIn(inPort uint32, table uint8, cookie uint64, frame []byte) []byte {
	b := be.AppendUint32(nil, 0xffffffff)
	b = be.AppendUint16(b, uint16(len(frame)))
	b = append(b, 1, table) // OFPR_ACTION
	b = be.AppendUint64(b, cookie)
	b = append(b, 0, 1, 0, 12)
	b = be.AppendUint32(b, wire.FieldInPort.Header())
	b = be.AppendUint32(b, inPort)
	b = append(b, 0, 0, 0, 0)
	b = append(b, 0, 0)
	return message(wire.TypePacketIn, 0, append(b, frame...))
}

func appendDuration(b []byte, since time.Time) []byte {
	d := time.Since(since)
	b = be.AppendUint32(b, uint32(d/time.Second))
	return be.AppendUint32(b, uint32(d%time.Second))
}

func flowRemoved(e *flowEntry, reason uint8) []byte {
	b := be.AppendUint64(nil, e.cookie)
	b = be.AppendUint16(b, e.rule.Priority)
	b = append(b, reason, e.rule.Table)
	b = appendDuration(b, e.since)
	b = append(b, make([]byte, 4+16)...) // timeouts and counters
	return message(wire.TypeFlowRemoved, 0, append(b, e.match...))
}

func flowStats(e *flowEntry) []byte {
	b := be.AppendUint16(nil, uint16(48+len(e.match)+len(e.instructions)))
	b = append(b, e.rule.Table, 0)
	b = appendDuration(b, e.since)
	b = be.AppendUint16(b, e.rule.Priority)
	b = append(b, 0, 0, 0, 0)
	b = be.AppendUint16(b, e.flags)
	b = append(b, 0, 0, 0, 0)
	b = be.AppendUint64(b, e.cookie)
	b = append(b, make([]byte, 16)...)
	b = append(b, e.match...)
	return append(b, e.instructions...)
}

// groupDesc encodes a group with the buckets as they came.
func groupDesc(g groupEntry) []byte {
	b := be.AppendUint16(nil, uint16(8+len(g.buckets)))
	b = append(b, byte(g.group.Type), 0)
	b = be.AppendUint32(b, g.group.ID)
	return append(b, g.buckets...)
}

func groupStats(g groupEntry) []byte {
	n := len(g.group.Buckets)
	b := be.AppendUint16(nil, uint16(40+16*n))
	b = append(b, 0, 0)
	b = be.AppendUint32(b, g.group.ID)
	b = append(b, make([]byte, 24)...) // reference count, padding and counters
	b = appendDuration(b, g.since)
	return append(b, make([]byte, 16*n)...)
}

func roleReply(xid uint32, role uint32, generation uint64) []byte {
	b := be.AppendUint32(nil, role)
	b = append(b, 0, 0, 0, 0)
	return message(wire.TypeRoleReply, xid, be.AppendUint64(b, generation))
}

func roleStatus(role uint32, generation uint64) []byte {
	b := be.AppendUint32(nil, wire.ExperimenterONF)
	b = be.AppendUint32(b, wire.ONFRoleStatus)
	b = be.AppendUint32(b, role)
	b = append(b, 0, 0, 0, 0) // reason: another controller asked to be master
	return message(wire.TypeExperimenter, 0, be.AppendUint64(b, generation))
}

func bundleReply(xid, id uint32, typ uint16) []byte {
	b := be.AppendUint32(nil, wire.ExperimenterONF)
	b = be.AppendUint32(b, wire.ONFBundleControl)
	b = be.AppendUint32(b, id)
	b = be.AppendUint16(b, typ+1)
	return message(wire.TypeExperimenter, xid, be.AppendUint16(b, 0))
}

// multipart packs entries into as many parts as they need.
func multipart(xid uint32, typ uint16, entries [][]byte) []byte {
	var out, part []byte
	flush := func(more uint16) {
		b := be.AppendUint16(nil, typ)
		b = be.AppendUint16(b, more)
		b = append(b, 0, 0, 0, 0)
		out = append(out, message(wire.TypeMultipartReply, xid, append(b, part...))...)
		part = nil
	}
	for _, e := range entries {
		if len(part)+len(e) > 60000 {
			flush(1)
		}
		part = append(part, e...)
	}
	flush(0)
	return out
}
