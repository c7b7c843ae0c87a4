package wire

import (
	"time"

	"kvnet/southbound/flow"
)

// FlowEntry is a rule as a switch reports it.
type FlowEntry struct {
	Table          uint8
	Priority       uint16
	Cookie         uint64
	Flags          uint16
	Duration       time.Duration
	Packets, Bytes uint64
	// MatchBytes (with its header and padding) and InstructionBytes are as
	// received. Open vSwitch gives instructions back byte by byte, but the fields
	// of a match in an order of its own.
	MatchBytes, InstructionBytes []byte
	// Rule is the decoded rule. Its ports are numbers, its switch is not set.
	Rule flow.Rule
	// DecodeErr is set if the rule uses something that flow can't say. Rule
	// has only its table and priority then.
	DecodeErr error
}

// GroupEntry is a group as a switch reports it.
type GroupEntry struct {
	Group flow.Group
	// DecodeErr is set if the group uses something that flow can't say. Group
	// has only its id then.
	DecodeErr error
}

// GroupStats are the counters of a group.
type GroupStats struct {
	ID             uint32
	Packets, Bytes uint64
	Duration       time.Duration
	Buckets        []BucketStats
}

// BucketStats are the counters of a bucket.
type BucketStats struct{ Packets, Bytes uint64 }

// PacketIn is a packet that a switch hands to the controller.
type PacketIn struct {
	InPort        uint32
	Table, Reason uint8
	Cookie        uint64
	TotalLen      uint16
	Data          []byte
}

// FlowRemoved says that a rule is gone.
type FlowRemoved struct {
	Table    uint8
	Priority uint16
	Cookie   uint64
	Reason   uint8
	// Rule has the table, the priority and the match; its switch is not set.
	Rule flow.Rule
	// DecodeErr is set if the match uses something that flow can't say.
	DecodeErr error
}
