package routerarp

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"kvnet/handlers/arp"
	"kvnet/model"
	"kvnet/model/state"
)

// Sender sends frames. It must not block: it queues the frame or fails.
type Sender interface {
	// PacketOut sends frame out of the port of that name.
	PacketOut(ctx context.Context, sw model.DPID, port string, frame []byte) error
}

// Learner takes in what the prober finds out.
type Learner interface {
	// Learned says that the upstream router peerIP of router has the address mac.
	Learned(ctx context.Context, router string, peerIP netip.Addr, mac model.MAC) error
}

// The times of the prober: how it asks for an unknown MAC, and how it makes sure
// of a MAC that seems to have changed.
const (
	// The same change that lets the prober ask lets the handler's rules go to the
	// switch. Without them the answer, which takes less than that, would be lost.
	firstRequest  = 200 * time.Millisecond
	secondRequest = 5 * time.Second  // after the first request for an unknown MAC
	laterRequests = 60 * time.Second // between all further ones
	verifyPause   = 5 * time.Second  // at least, before a request that verifies
	verifyWindow  = 3 * time.Second  // for the answer to it
	sendTimeout   = time.Second
	learnTimeout  = 5 * time.Second
	learnAgain    = 5 * time.Second // after the MAC could not be stored
)

// learnersAtOnce bounds how many results are stored at the same time.
const learnersAtOnce = 8

// ProberConfig says what a Prober works with.
type ProberConfig struct {
	DB      *state.DB
	Sender  Sender
	Learner Learner
	Logger  *slog.Logger
	// QueueLen bounds how many packets wait to be looked at; 0: 256.
	QueueLen int
}

// Prober asks upstream routers for their MACs. It works for the leader only, while
// Run runs: nothing of it outlives the leadership (row A-1 of
// docs/deviations.md).
type Prober struct {
	config  ProberConfig
	queue   chan packet
	running atomic.Bool
	dropped atomic.Uint64
}

// packet is an ARP packet that came to the controller.
type packet struct {
	sw     model.DPID
	inPort uint32
	arp    arp.Packet
}

// NewProber makes a Prober.
func NewProber(c ProberConfig) *Prober {
	if c.QueueLen <= 0 {
		c.QueueLen = 256
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Prober{config: c, queue: make(chan packet, c.QueueLen)}
}

// HandlePacketIn takes in a packet. It never blocks; packets that find the queue
// full are dropped and counted, and frame is not used afterwards.
func (p *Prober) HandlePacketIn(sw model.DPID, inPort uint32, frame []byte) {
	if !p.running.Load() {
		return
	}
	a, err := arp.Parse(frame)
	if err != nil || a.Op != arp.Reply && !a.Gratuitous() {
		return
	}
	select {
	case p.queue <- packet{sw, inPort, a}:
	default:
		p.dropped.Add(1)
	}
}

// Dropped counts the packets that found the queue full.
func (p *Prober) Dropped() uint64 { return p.dropped.Load() }

// Run works until ctx ends, and then waits for what it has begun. It may be called
// again, but not twice at a time.
func (p *Prober) Run(ctx context.Context) error {
	sub, snap := p.config.DB.Subscribe()
	defer sub.Close()
	p.drain()
	p.running.Store(true)
	defer p.running.Store(false)

	w := newWork(ctx, p.config)
	defer w.close()
	if snap.Complete() {
		w.begin(snap)
	}
	for {
		select {
		case <-sub.C():
			next, changes := sub.Take()
			switch {
			case w.begun:
				w.follow(next, changes)
			case next.Complete():
				// Before, an unknown MAC may only not have been read yet.
				w.begin(next)
			}
		case pk := <-p.queue:
			w.judge(pk)
		case r := <-w.results:
			w.learned(r)
		case <-w.timer.C:
			w.askDue()
		case <-ctx.Done():
			return nil
		}
		w.setTimer()
	}
}

// drain throws away what came before Run.
func (p *Prober) drain() {
	for {
		select {
		case <-p.queue:
		default:
			return
		}
	}
}
