package openflow

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"kvnet/model/state"
	"kvnet/southbound/openflow/wire"
)

// Role is the role that this server wants on every switch.
type Role struct {
	// Master: the server leads. A follower is a SLAVE.
	Master bool
	// Generation is the term: the server's own if it leads, else the one that it
	// has read.
	Generation uint64
}

// Config says how a Server works. Observer and Events must be set; zero durations
// and lengths mean the defaults.
type Config struct {
	// Observer is told of switches and their ports.
	Observer state.Observer
	// Events is told of what the reconciler needs.
	Events Events
	Logger *slog.Logger
	// EchoInterval is how long a silent connection may be before the switch is
	// asked for a sign of life (5 s), EchoTimeout how long that may take (10 s).
	EchoInterval, EchoTimeout time.Duration
	// WriteTimeout ends a connection whose switch doesn't read (10 s).
	WriteTimeout time.Duration
	// HandshakeTimeout is the time from the connection to the list of ports, and
	// for the answer to a role request (10 s).
	HandshakeTimeout time.Duration
	// QueueLen bounds how many writes wait for a slow switch (1024).
	QueueLen int
}

// Events are called from a session's reader goroutine, in order per session.
// Implementations must not block.
type Events interface {
	// MasterUp says that the switch confirmed the role MASTER with the present
	// generation, which it does after each SetRole. Its ports are known:
	// Observer.SwitchConnected came before.
	MasterUp(s *Session)
	// SessionDown says that a session ended, also one that never was master.
	SessionDown(s *Session, err error)
	// PacketIn hands over a packet. It is only called while MASTER.
	PacketIn(s *Session, p PacketIn)
	// FlowRemoved says that a rule is gone, also one that this server deleted. It
	// is only called while MASTER.
	FlowRemoved(s *Session, f FlowRemoved)
	// Stale says that the switch knows a newer generation: it refused our
	// MASTER request, or made another server its master.
	Stale(s *Session, switchGeneration uint64)
}

// What a switch reports, decoded.
type (
	// FlowEntry is a rule as a switch reports it.
	FlowEntry = wire.FlowEntry
	// GroupEntry is a group as a switch reports it.
	GroupEntry = wire.GroupEntry
	// GroupStats are the counters of a group.
	GroupStats = wire.GroupStats
	// PortStats are the counters of a port.
	PortStats = wire.PortStats
	// TableStats are the counters of a table.
	TableStats = wire.TableStats
	// Description is what a switch says about itself.
	Description = wire.Desc
	// PacketIn is a packet that a switch hands to the controller.
	PacketIn = wire.PacketIn
	// FlowRemoved says that a rule is gone.
	FlowRemoved = wire.FlowRemoved
)

// FlowQuery selects rules of a switch.
type FlowQuery struct {
	// Table is the table, 0xff for all.
	Table uint8
	// Cookie and Mask select rules whose cookie is equal under the mask.
	Cookie, Mask uint64
}

// Errors of a Session. Use errors.Is.
var (
	// ErrNotMaster: this server is not (or no longer) master of the switch.
	ErrNotMaster = errors.New("this server is not master of the switch")
	// ErrClosed: the session has ended.
	ErrClosed = errors.New("the session with the switch has ended")
	// ErrQueueFull: the switch doesn't read as fast as is sent.
	ErrQueueFull = errors.New("the queue of messages to the switch is full")
	// ErrTooLarge: a message of more than 65,535 bytes can't be sent.
	ErrTooLarge = errors.New("the message is larger than OpenFlow allows")
)

// BundleError says which messages of a bundle the switch refused. Nothing of the
// bundle is in force.
type BundleError struct {
	// Refused is never empty.
	Refused []Refusal
}

// Refusal is one refused message.
type Refusal struct {
	// Index is the place of the message in the bundle; -1 for the bundle itself.
	Index      int
	Type, Code uint16
	// Text names type and code, like "OFPET_BAD_ACTION/OFPBAC_BAD_OUT_GROUP".
	Text string
}

// Error implements error.
func (e *BundleError) Error() string {
	var b strings.Builder
	b.WriteString("the switch refused the bundle:")
	for i, r := range e.Refused {
		if i > 0 {
			b.WriteByte(',')
		}
		if r.Index < 0 {
			fmt.Fprintf(&b, " %s", r.Text)
		} else {
			fmt.Fprintf(&b, " message %d: %s", r.Index, r.Text)
		}
	}
	return b.String()
}

// Message is an encoded message. It gets its transaction id when it is sent.
// Messages may be sent any number of times, to any number of switches.
type Message struct{ bytes []byte }

// Len is the length of m in bytes.
func (m Message) Len() int { return len(m.bytes) }

// EncodedRule holds the parts of a rule exactly as they are sent.
type EncodedRule struct {
	Table    uint8
	Priority uint16
	// Match has its OXM header and padding.
	Match, Instructions []byte
}
