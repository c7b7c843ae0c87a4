package gossip

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// memNet is a network in memory, for tests in virtual time. Each host has one
// address. A host can be killed, as a process that is killed, and pairs of hosts
// can be cut off from each other, as by a cable that is pulled.
type memNet struct {
	mu    sync.Mutex
	hosts map[string]*memHost // by address
	cut   map[[2]string]bool
	// udpCut drops packets and leaves streams alone.
	udpCut bool
	// refuse refuses new streams and leaves packets alone.
	refuse bool
}

func newMemNet() *memNet {
	return &memNet{hosts: map[string]*memHost{}, cut: map[[2]string]bool{}}
}

// memHost is a memberlist.Transport on a memNet.
type memHost struct {
	n       *memNet
	addr    string
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
	once    sync.Once

	mu    sync.Mutex
	conns []net.Conn
}

type memAddr string

func (memAddr) Network() string  { return "mem" }
func (a memAddr) String() string { return string(a) }

func (n *memNet) listen(addr string) *memHost {
	h := &memHost{
		n: n, addr: addr,
		packets: make(chan *memberlist.Packet, 256),
		streams: make(chan net.Conn),
		done:    make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = h
	return h
}

// partition cuts a off from each of others, or mends it.
func (n *memNet) partition(cut bool, a string, others ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range others {
		n.cut[[2]string{a, b}], n.cut[[2]string{b, a}] = cut, cut
	}
}

// to finds a host; nil if nobody listens at the address. ok is false if nothing
// comes through.
func (n *memNet) to(from, addr string) (h *memHost, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[addr], !n.cut[[2]string{from, addr}]
}

// kill ends a host as a killed process ends: its streams are closed and nobody
// listens any more.
func (h *memHost) kill() {
	h.once.Do(func() { close(h.done) })
	h.n.mu.Lock()
	if h.n.hosts[h.addr] == h {
		delete(h.n.hosts, h.addr)
	}
	h.n.mu.Unlock()
	h.drop()
}

// drop closes the host's streams.
func (h *memHost) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

func (h *memHost) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	a, err := net.ResolveTCPAddr("tcp", h.addr)
	if err != nil {
		return nil, 0, err
	}
	return a.IP.To4(), a.Port, nil
}

func (h *memHost) WriteTo(b []byte, addr string) (time.Time, error) {
	now := time.Now()
	if h.dead() {
		return now, net.ErrClosed
	}
	to, ok := h.n.to(h.addr, addr)
	h.n.mu.Lock()
	drop := h.n.udpCut
	h.n.mu.Unlock()
	if to != nil && ok && !drop {
		select {
		case to.packets <- &memberlist.Packet{Buf: append([]byte(nil), b...), From: memAddr(h.addr), Timestamp: now}:
		default: // as a full socket buffer
		}
	}
	return now, nil
}

func (h *memHost) PacketCh() <-chan *memberlist.Packet { return h.packets }

func (h *memHost) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	if h.dead() {
		return nil, net.ErrClosed
	}
	to, ok := h.n.to(h.addr, addr)
	if !ok {
		select {
		case <-time.After(timeout):
		case <-h.done:
		}
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ETIMEDOUT)
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	h.n.mu.Lock()
	refuse := h.n.refuse
	h.n.mu.Unlock()
	if to == nil || refuse {
		return nil, refused
	}
	a, b := memPipe(memAddr(h.addr), memAddr(addr))
	h.keep(a)
	to.keep(b)
	select {
	case to.streams <- b:
		return a, nil
	case <-to.done:
		return nil, refused
	}
}

func (h *memHost) keep(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead() {
		c.Close()
	}
	h.conns = append(h.conns, c)
}

func (h *memHost) dead() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

func (h *memHost) StreamCh() <-chan net.Conn { return h.streams }

func (h *memHost) Shutdown() error {
	h.kill()
	return nil
}
