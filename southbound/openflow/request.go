package openflow

import (
	"encoding/binary"

	"kvnet/southbound/openflow/wire"
)

// newMessage makes a message of a type with a body.
func newMessage(typ uint8, xid uint32, body []byte) []byte {
	b := make([]byte, wire.HeaderLen, wire.HeaderLen+len(body))
	b[0], b[1] = wire.Version, typ
	binary.BigEndian.PutUint16(b[2:], uint16(wire.HeaderLen+len(body)))
	binary.BigEndian.PutUint32(b[4:], xid)
	return append(b, body...)
}

// hello offers OpenFlow 1.3 and nothing else.
func hello(xid uint32) []byte {
	return newMessage(wire.TypeHello, xid, []byte{0, 1, 0, 8, 0, 0, 0, 1 << wire.Version})
}

// helloFailed says that there is no common version.
func helloFailed(xid uint32) []byte {
	body := append(u16(wire.ErrorHelloFailed), u16(wire.CodeHelloIncompatible)...)
	return newMessage(wire.TypeError, xid, append(body, "only OpenFlow 1.3 is spoken here"...))
}

// setConfig asks for whole packets and leaves fragments alone.
func setConfig(xid uint32) []byte {
	return newMessage(wire.TypeSetConfig, xid, []byte{0, 0, 0xff, 0xff})
}

func roleRequest(xid, role uint32, generation uint64) []byte {
	body := binary.BigEndian.AppendUint32(nil, role)
	body = append(body, 0, 0, 0, 0)
	return newMessage(wire.TypeRoleRequest, xid, binary.BigEndian.AppendUint64(body, generation))
}

func multipartRequest(xid uint32, typ uint16, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, typ)
	b = append(b, 0, 0, 0, 0, 0, 0) // flags and padding
	return newMessage(wire.TypeMultipartRequest, xid, append(b, body...))
}

// flowStatsBody selects the rules that q asks for, whatever their match.
func flowStatsBody(q FlowQuery) []byte {
	b := []byte{q.Table, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, wire.AnyPort)
	b = binary.BigEndian.AppendUint32(b, wire.AnyGroup)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, q.Cookie&q.Mask)
	b = binary.BigEndian.AppendUint64(b, q.Mask)
	return append(b, emptyMatch...)
}

// appendMessage appends m with its transaction id.
func appendMessage(b []byte, xid uint32, m Message) []byte {
	n := len(b)
	b = append(b, m.bytes...)
	binary.BigEndian.PutUint32(b[n+4:], xid)
	return b
}
