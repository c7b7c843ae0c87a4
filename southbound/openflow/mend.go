package openflow

import (
	"encoding/binary"
	"errors"
	"fmt"

	ofp "github.com/contiv/libOpenflow/openflow13"

	"kvnet/southbound/openflow/wire"
)

// This file mends what libOpenflow encodes wrongly, and keeps the library from
// doing harm. What it is used for, and what is done about each fault:
//
//   - FlowMod writes out_port in the place of out_group, so that a delete with a
//     filter deletes nothing or everything: flowMod writes both.
//   - FlowMod and GroupMod leave instructions and buckets of a delete out of the
//     length of the header but send them all the same, which the switch reads as
//     the next message: deletes are built without them.
//   - All lengths are 16-bit numbers that overflow in silence: sizes are added up
//     as int before anything is encoded, and every message's header is
//     compared with its bytes (marshal).
//   - A CT action takes the length of a nested NAT when that is added, and a NAT
//     with a lowest port only is a nil pointer: a NAT is added when it is
//     complete, always with both ends of its ranges.
//   - PacketOut.Data must not be nil: packetOut always sets it.
//   - The constructors of fields are not used (see field).
//   - Hello claims OpenFlow 1.0, role requests don't exist, requests for
//     statistics have the layout of 1.0 and NXActionResubmit has a wrong type: none
//     of them is used (see request.go).
//   - A panic in the library is turned into an error (marshal).

var errDecode = errors.New("libOpenflow isn't used to decode")

// marshaler is the part of the library's messages that is used.
type marshaler interface{ MarshalBinary() ([]byte, error) }

// marshal encodes with the library.
func marshal(what string, m marshaler) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("encode a %s: libOpenflow panicked: %v", what, p)
		}
	}()
	if b, err = m.MarshalBinary(); err != nil {
		return nil, fmt.Errorf("encode a %s: %w", what, err)
	}
	return b, nil
}

// finish makes a message of b, whose header holds the right length.
func finish(what string, b []byte) (Message, error) {
	if len(b) > maxMessage {
		return Message{}, fmt.Errorf("%s of %d bytes: %w", what, len(b), ErrTooLarge)
	}
	if h, err := wire.ParseHeader(b); err != nil || int(h.Length) != len(b) {
		return Message{}, fmt.Errorf("%s of %d bytes that says it has %d: %w", what, len(b), h.Length, wire.ErrLength)
	}
	return Message{b}, nil
}

// must is for messages of a fixed size, which can't fail.
func must(m Message, err error) Message {
	if err != nil {
		panic(err)
	}
	return m
}

// Offsets in a FLOW_MOD.
const (
	flowModOutPort  = 36
	flowModOutGroup = 40
	flowModFixedLen = 48 // header and fixed part, before the match
)

// flowMod encodes a flow-mod whose match and instructions are encoded already.
func flowMod(f *ofp.FlowMod, match, instructions []byte) (Message, error) {
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
