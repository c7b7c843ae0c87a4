package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the only version that is spoken: OpenFlow 1.3.
const Version = 4

// Sizes of a message (OpenFlow 1.3.5, section 7.1).
const (
	HeaderLen = 8
	MaxLen    = 0xffff
)

// Message types (OpenFlow 1.3.5, section 7.1).
const (
	TypeHello            uint8 = 0
	TypeError            uint8 = 1
	TypeEchoRequest      uint8 = 2
	TypeEchoReply        uint8 = 3
	TypeExperimenter     uint8 = 4
	TypeFeaturesRequest  uint8 = 5
	TypeFeaturesReply    uint8 = 6
	TypeSetConfig        uint8 = 9
	TypePacketIn         uint8 = 10
	TypeFlowRemoved      uint8 = 11
	TypePortStatus       uint8 = 12
	TypePacketOut        uint8 = 13
	TypeFlowMod          uint8 = 14
	TypeGroupMod         uint8 = 15
	TypeMultipartRequest uint8 = 18
	TypeMultipartReply   uint8 = 19
	TypeBarrierRequest   uint8 = 20
	TypeBarrierReply     uint8 = 21
	TypeRoleRequest      uint8 = 24
	TypeRoleReply        uint8 = 25
)

// Experimenters and the types of their messages.
const (
	ExperimenterONF    uint32 = 0x4f4e4600
	ExperimenterNicira uint32 = 0x00002320

	ONFRoleStatus    uint32 = 1911
	ONFBundleControl uint32 = 2300
	ONFBundleAdd     uint32 = 2301
)

// Header starts every message.
type Header struct {
	Version, Type uint8
	Length        uint16
	XID           uint32
}

// ErrLength is wrapped by all errors about a message that is too short, too long
// or whose parts don't fit into it.
var ErrLength = errors.New("length doesn't fit")

// ParseHeader decodes the header of a message.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, fmt.Errorf("header of %d bytes: %w", len(b), ErrLength)
	}
	h := Header{b[0], b[1], binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])}
	if h.Length < HeaderLen {
		return h, fmt.Errorf("message that says it has %d bytes: %w", h.Length, ErrLength)
	}
	return h, nil
}

// Reader cuts a stream of bytes into messages.
type Reader struct {
	// Check, if set, may refuse a message by its header, before the rest of it
	// is waited for.
	Check func(Header) error

	r   *bufio.Reader
	buf []byte // grows to the longest message seen
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), buf: make([]byte, 512)}
}

// Next reads one whole message, which is valid until the next call.
func (r *Reader) Next() (Header, []byte, error) {
	if _, err := io.ReadFull(r.r, r.buf[:HeaderLen]); err != nil {
		return Header{}, nil, err
	}
	h, err := ParseHeader(r.buf)
	if err == nil && r.Check != nil {
		err = r.Check(h)
	}
	if err != nil {
		return h, nil, err
	}
	if n := int(h.Length); n > len(r.buf) {
		grown := make([]byte, min(max(n, 2*len(r.buf)), MaxLen))
		copy(grown, r.buf[:HeaderLen])
		r.buf = grown
	}
	m := r.buf[:h.Length]
	if _, err := io.ReadFull(r.r, m[HeaderLen:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return h, nil, err
	}
	return h, m, nil
}

// message checks that b is one whole message of type t and returns a reader of
// what follows its header.
func message(b []byte, t uint8) (*reader, Header, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, h, err
	}
	if int(h.Length) != len(b) {
		return nil, h, fmt.Errorf("message of %d bytes that says it has %d: %w", len(b), h.Length, ErrLength)
	}
	if h.Type != t {
		return nil, h, fmt.Errorf("message of type %d where type %d is expected", h.Type, t)
	}
	return &reader{b: b[HeaderLen:]}, h, nil
}
