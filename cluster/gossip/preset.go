package gossip

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// Preset is a choice of timings.
type Preset string

const (
	// LAN is for servers in different places of one site. A silent member (its
	// machine or network is gone) counts as failed after two to three seconds.
	LAN Preset = "lan"
	// Rack is for servers beside each other. A silent member counts as failed
	// after about a second.
	Rack Preset = "rack"
)

// The presets. A process that dies is noticed by its closed session, in
// milliseconds, with either.
var presets = map[Preset]func(*memberlist.Config){
	LAN: func(c *memberlist.Config) {
		// Each member probes one other twice a second, in turn. A probe waits
		// half of that for the answer, far above a round trip on a site, and
		// leaves the other half to the detour over other members and TCP.
		c.ProbeInterval = 500 * time.Millisecond
		c.ProbeTimeout = 250 * time.Millisecond
		// A suspect has 3 probe intervals to speak up. With 3, a second member
		// confirms the suspicion; a member that is cut off gets no confirmation,
		// so the wait without one is only twice as long. The library's sixfold
		// made such a member believe in its old view for ten seconds.
		c.SuspicionMult = 3
		c.SuspicionMaxTimeoutMult = 2
		// News reach everybody in a few tenths of a second.
		c.GossipInterval = 100 * time.Millisecond
		// A stream to a member that is gone holds nobody up for long.
		c.TCPTimeout = 2 * time.Second
	},
	Rack: func(c *memberlist.Config) {
		// Five probes a second; a round trip within a rack takes far less than
		// the half of it.
		c.ProbeInterval = 200 * time.Millisecond
		c.ProbeTimeout = 100 * time.Millisecond
		// With 2 no confirmation is wanted, so that a member that is cut off
		// notices as fast as the others: 0.4 s after the failed probe.
		c.SuspicionMult = 2
		c.SuspicionMaxTimeoutMult = 2
		c.GossipInterval = 50 * time.Millisecond
		c.TCPTimeout = time.Second
	},
}

// base is what both presets have in common.
func base() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	// The whole view is compared with one member, so that whatever got lost is
	// mended soon; with a few members it costs next to nothing.
	c.PushPullInterval = 10 * time.Second
	// A process that is starved of CPU slows its probes down. By eightfold, the
	// library's value, it would notice nothing for seconds.
	c.AwarenessMaxMultiplier = 3
	// A failed member is told of its failure for a while, so that it can object.
	c.GossipToTheDeadTime = 30 * time.Second
	// A server that comes back with another address takes its name over as soon
	// as the old address counts as failed.
	c.DeadNodeReclaimTime = time.Nanosecond
	// With a key nothing unencrypted is taken or sent.
	c.GossipVerifyIncoming = true
	c.GossipVerifyOutgoing = true
	// Messages are small.
	c.EnableCompression = false
	c.DelegateProtocolVersion = protocolVersion
	c.DelegateProtocolMin = protocolVersion
	c.DelegateProtocolMax = protocolVersion
	return c
}

// protocolVersion is the version of what this package sends over memberlist.
const protocolVersion = 1
