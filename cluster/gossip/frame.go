package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// frame is what this package sends from one server to another.
type frame struct {
	kind     frameKind
	id       uint64 // of the request that this is or answers
	from     string
	instance uint64 // of the process that sent it
	to       uint64 // instance that a request is for; 0: any
	method   string // of a request
	timeout  time.Duration
	payload  []byte
}

type frameKind uint8

const (
	frameRequest frameKind = iota + 1
	frameAnswer            // payload is the answer
	frameError             // payload is the error's text
	frameLeave             // the sender takes its leave
)

const (
	frameVersion = 1
	// MaxPayload is the largest payload of a request and of an answer.
	MaxPayload = 1 << 20
	maxMethod  = 64
	// maxTimeout bounds how long a handler may work for somebody.
	maxTimeout = time.Minute
)

var errFrame = errors.New("unreadable message")

// encode writes version, kind, id, instance, to, milliseconds, the names with
// their lengths in one byte, and the payload with its length in four.
func (f frame) encode() ([]byte, error) {
	switch {
	case len(f.payload) > MaxPayload:
		return nil, fmt.Errorf("a payload of %d bytes can't be sent; at most %d are possible", len(f.payload), MaxPayload)
	case len(f.method) > maxMethod || len(f.from) > maxName:
		return nil, fmt.Errorf("the name %q or %q is too long to be sent", f.method, f.from)
	}
	b := make([]byte, 0, 36+len(f.from)+len(f.method)+len(f.payload))
	b = append(b, frameVersion, byte(f.kind))
	b = binary.BigEndian.AppendUint64(b, f.id)
	b = binary.BigEndian.AppendUint64(b, f.instance)
	b = binary.BigEndian.AppendUint64(b, f.to)
	b = binary.BigEndian.AppendUint32(b, uint32(min(f.timeout, maxTimeout).Milliseconds()))
	b = append(append(b, byte(len(f.from))), f.from...)
	b = append(append(b, byte(len(f.method))), f.method...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	return append(b, f.payload...), nil
}

// decodeFrame reads a frame. Its payload is a copy.
func decodeFrame(b []byte) (f frame, err error) {
	const fixed = 2 + 8 + 8 + 8 + 4
	if len(b) < fixed {
		return f, fmt.Errorf("%w: too short", errFrame)
	}
	if b[0] != frameVersion {
		return f, fmt.Errorf("%w: version %d", errFrame, b[0])
	}
	f.kind = frameKind(b[1])
	if f.kind < frameRequest || f.kind > frameLeave {
		return frame{}, fmt.Errorf("%w: kind %d", errFrame, b[1])
	}
	f.id = binary.BigEndian.Uint64(b[2:])
	f.instance = binary.BigEndian.Uint64(b[10:])
	f.to = binary.BigEndian.Uint64(b[18:])
	f.timeout = time.Duration(binary.BigEndian.Uint32(b[26:])) * time.Millisecond
	if f.timeout > maxTimeout {
		return frame{}, fmt.Errorf("%w: a deadline of %s", errFrame, f.timeout)
	}
	b = b[fixed:]
	var ok bool
	if f.from, b, ok = cutString(b); !ok || checkName(f.from) != nil {
		return frame{}, fmt.Errorf("%w: name of the sender", errFrame)
	}
	if f.method, b, ok = cutString(b); !ok || len(f.method) > maxMethod || !printable(f.method) {
		return frame{}, fmt.Errorf("%w: kind of request", errFrame)
	}
	if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) != uint64(len(b)-4) || len(b)-4 > MaxPayload {
		return frame{}, fmt.Errorf("%w: size of the payload", errFrame)
	}
	f.payload = append([]byte(nil), b[4:]...)
	return f, nil
}
