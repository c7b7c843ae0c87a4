package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Relay forwards the connections of any number of switches to one server. Each
// switch has a listener of its own, so the relay knows it by name from the first
// byte on.
type Relay struct {
	Recorder

	connect func() (net.Conn, error)
	mu      sync.Mutex
	doors   map[string]*door
	closing chan struct{}
	running sync.WaitGroup
}

// New makes a relay to the server's OpenFlow address (TCP).
func New(server string) *Relay {
	return NewDialing(func() (net.Conn, error) { return net.DialTimeout("tcp", server, dialTimeout) })
}

// NewDialing makes a relay that connects to the server by a function, for a server
// that is in another network namespace.
func NewDialing(connect func() (net.Conn, error)) *Relay {
	return &Relay{connect: connect, doors: map[string]*door{}, closing: make(chan struct{})}
}

// dialTimeout bounds the wait for a server that doesn't answer.
const dialTimeout = 5 * time.Second

// Listen waits for the switch of that name, on "unix" or "tcp".
func (r *Relay) Listen(switchName, network, address string) (net.Addr, error) {
	ln, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("listen for switch %s: %w", switchName, err)
	}
	d := newDoor(r, switchName, ln)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doors[switchName] != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen for switch %s: the name is taken", switchName)
	}
	r.doors[switchName] = d
	r.running.Go(d.accept)
	return ln.Addr(), nil
}

// Close ends all connections and waits for the relay's goroutines.
func (r *Relay) Close() {
	r.mu.Lock()
	select {
	case <-r.closing:
	default:
		close(r.closing)
	}
	doors := r.each()
	r.mu.Unlock()
	for _, d := range doors {
		d.close()
	}
	r.running.Wait()
}

// Hold keeps switches out: their present connections are cut, new ones are
// accepted but lead nowhere until Admit. Without names it means all switches.
func (r *Relay) Hold(switches ...string) { r.forEach((*door).hold, switches) }

// Admit lets held switches in. Without names it means all.
func (r *Relay) Admit(switches ...string) { r.forEach((*door).admit, switches) }

// Cut ends the connections of switches, which may come back at once. Without
// names it means all.
func (r *Relay) Cut(switches ...string) { r.forEach((*door).cut, switches) }

// CutWhen ends a switch's connection as soon as a frame comes by that match
// accepts, once. The frame is recorded and goes no further.
func (r *Relay) CutWhen(switchName string, match func(Frame) bool) {
	r.pick([]string{switchName})[0].cutWhen(match)
}

// Freeze stops forwarding in both directions while connections stay open.
// Without names it means all.
func (r *Relay) Freeze(switches ...string) { r.forEach((*door).freeze, switches) }

// FreezeWhen freezes a switch's connection as soon as a frame comes by that match
// accepts, once. The frame and all that follows wait for Thaw, and are recorded when
// they pass.
func (r *Relay) FreezeWhen(switchName string, match func(Frame) bool) {
	r.pick([]string{switchName})[0].freezeWhen(match)
}

// Thaw lets frozen connections go on. Without names it means all.
func (r *Relay) Thaw(switches ...string) { r.forEach((*door).thaw, switches) }

// WaitConnected waits until the switches have connections to the server. Without
// names it means all.
func (r *Relay) WaitConnected(ctx context.Context, switches ...string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := r.missing(switches)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for switches %v: %w", missing, ctx.Err())
		case <-tick.C:
		}
	}
}

// Connected tells whether a switch has a connection to the server.
func (r *Relay) Connected(switchName string) bool { return r.pick([]string{switchName})[0].connected() }

// Waiting is the number of a switch's connections that are kept waiting.
func (r *Relay) Waiting(switchName string) int { return r.pick([]string{switchName})[0].waiting() }

func (r *Relay) missing(switches []string) []string {
	var missing []string
	for _, d := range r.pick(switches) {
		if !d.connected() {
			missing = append(missing, d.name)
		}
	}
	return missing
}

func (r *Relay) forEach(do func(*door), switches []string) {
	for _, d := range r.pick(switches) {
		do(d)
	}
}

func (r *Relay) pick(switches []string) []*door {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(switches) == 0 {
		return r.each()
	}
	var out []*door
	for _, name := range switches {
		d := r.doors[name]
		if d == nil {
			panic("the relay knows no switch " + name)
		}
		out = append(out, d)
	}
	return out
}

func (r *Relay) each() []*door {
	out := make([]*door, 0, len(r.doors))
	for _, d := range r.doors {
		out = append(out, d)
	}
	return out
}

var errClosed = errors.New("the relay is closed")

func (r *Relay) dial() (net.Conn, error) {
	select {
	case <-r.closing:
		return nil, errClosed
	default:
	}
	return r.connect()
}
