package relay

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// Direction is the way that a frame goes.
type Direction int

// The directions.
const (
	ToSwitch Direction = iota
	ToServer
)

// String names d.
func (d Direction) String() string {
	if d == ToSwitch {
		return "to switch"
	}
	return "to server"
}

// Type is a message type of OpenFlow 1.3.
type Type uint8

// The message types that the recorder tells apart (OpenFlow 1.3.5, section 7.1).
const (
	Hello         Type = 0
	Error         Type = 1
	EchoRequest   Type = 2
	EchoReply     Type = 3
	Experimenter  Type = 4
	FeaturesReply Type = 6
	PacketIn      Type = 10
	FlowRemoved   Type = 11
	PacketOut     Type = 13
	FlowMod       Type = 14
	GroupMod      Type = 15
	RoleRequest   Type = 24
	RoleReply     Type = 25
)

// Experimenter messages of the Open Networking Foundation's bundle extension.
const (
	bundleExperimenter = 0x4f4e4600
	bundleControl      = 2300
	bundleAdd          = 2301
)

// Requests of a bundle-control message to a switch.
const (
	BundleOpen   = 0
	BundleCommit = 4
)

// headerLength is the length of the OpenFlow header, and the offset at which a
// message inside a bundle-add begins is bundleInner.
const (
	headerLength = 8
	bundleInner  = 24
)

// Frame is one OpenFlow message that went through the relay.
type Frame struct {
	Time      time.Time
	Switch    string
	Direction Direction
	Type      Type
	// BundleAdd: the message is a bundle-add, and Type is that of the message
	// inside.
	BundleAdd bool
	Bytes     []byte
}

// newFrame is a message that goes by now.
func newFrame(switchName string, d Direction, message []byte) Frame {
	f := Frame{Time: time.Now(), Switch: switchName, Direction: d, Bytes: message}
	f.Type, f.BundleAdd = classify(message)
	return f
}

// Writes tells whether the frame changes a switch's rules or groups when it takes
// effect: by itself or as a part of a bundle.
func (f Frame) Writes() bool {
	return f.Direction == ToSwitch && (f.Type == FlowMod || f.Type == GroupMod)
}

// BundleControl reads a bundle-control message that goes to a switch.
func (f Frame) BundleControl() (bundle uint32, request uint16, ok bool) {
	if f.Direction != ToSwitch || f.Type != Experimenter || len(f.Bytes) < bundleInner ||
		binary.BigEndian.Uint32(f.Bytes[8:]) != bundleExperimenter || binary.BigEndian.Uint32(f.Bytes[12:]) != bundleControl {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(f.Bytes[16:]), binary.BigEndian.Uint16(f.Bytes[20:]), true
}

// BundleID is the bundle that a bundle-add belongs to.
func (f Frame) BundleID() uint32 { return binary.BigEndian.Uint32(f.Bytes[16:]) }

// String shows the frame with its bytes.
func (f Frame) String() string {
	inside := ""
	if f.BundleAdd {
		inside = " in a bundle"
	}
	return fmt.Sprintf("%s %s %s type %d%s: %s", f.Time.Format("15:04:05.000000"), f.Switch, f.Direction, f.Type, inside, hex.EncodeToString(f.Bytes))
}

// classify finds type and wrapping of a message.
func classify(message []byte) (t Type, inBundle bool) {
	t = Type(message[1])
	if t == Experimenter && len(message) >= bundleInner+headerLength &&
		binary.BigEndian.Uint32(message[8:]) == bundleExperimenter &&
		binary.BigEndian.Uint32(message[12:]) == bundleAdd {
		return Type(message[bundleInner+1]), true
	}
	return t, false
}

// errNoFrame says that what came is no OpenFlow message. Its bytes are returned
// with it.
var errNoFrame = fmt.Errorf("no OpenFlow message: its length is below %d", headerLength)

// readFrame reads one message by the length in its header.
func readFrame(r io.Reader) ([]byte, error) {
	header := make([]byte, headerLength)
	if n, err := io.ReadFull(r, header); err != nil {
		return header[:n], err
	}
	length := int(binary.BigEndian.Uint16(header[2:]))
	if length < headerLength {
		return header, errNoFrame
	}
	message := make([]byte, length)
	copy(message, header)
	n, err := io.ReadFull(r, message[headerLength:])
	return message[:headerLength+n], err
}
