package openflow

import (
	"errors"
	"fmt"

	"kvnet/southbound/openflow/wire"
)

// This file mends what libOpenflow encodes wrongly, and keeps the library from
// doing harm. What it is used for, and what is done about each fault:
//
//   - GroupMod leaves the buckets of a delete out of the length of the header but
//     sends them all the same, which the switch reads as the next message: deletes
//     are built without them. FlowMod has the same fault and others, and is not used
//     (see Encoder).
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
