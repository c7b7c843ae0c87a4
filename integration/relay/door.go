package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// door is the entrance of one switch.
type door struct {
	relay *Relay
	name  string
	ln    net.Listener

	mu     sync.Mutex
	opened chan struct{} // closed while switches may come in
	flow   chan struct{} // closed while bytes may pass
	links  map[*link]struct{}
	closed bool
	last   func(Frame) bool // which frame cuts the connection; nil: none
	ice    func(Frame) bool // which frame freezes the connection; nil: none
}

// link is one connection of the switch.
type link struct {
	switchEnd net.Conn
	serverEnd net.Conn // nil while the switch is kept waiting
	once      sync.Once
	gone      chan struct{}
}

func newDoor(r *Relay, name string, ln net.Listener) *door {
	d := &door{relay: r, name: name, ln: ln, opened: make(chan struct{}), flow: make(chan struct{}), links: map[*link]struct{}{}}
	close(d.opened)
	close(d.flow)
	return d
}

func (d *door) accept() {
	for {
		conn, err := d.ln.Accept()
		if err != nil {
			return // the listener is closed with the relay
		}
		l := &link{switchEnd: conn, gone: make(chan struct{})}
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			_ = conn.Close()
			return
		}
		d.links[l] = struct{}{}
		d.relay.running.Go(func() { d.serve(l) })
		d.mu.Unlock()
	}
}

// serve keeps a connection waiting until the door is open, and forwards then.
func (d *door) serve(l *link) {
	defer d.end(l)
	fromSwitch := bufio.NewReaderSize(l.switchEnd, 1<<16)
	if !d.waitOpen(l, fromSwitch) {
		return
	}
	server, err := d.relay.dial()
	if err != nil {
		return // the switch sees a closed connection, as without the relay
	}
	d.mu.Lock()
	stillOpen := isClosed(d.opened) && !isClosed(l.gone)
	if stillOpen {
		l.serverEnd = server
	}
	d.mu.Unlock()
	if !stillOpen {
		_ = server.Close()
		return
	}
	d.relay.running.Go(func() {
		defer d.end(l)
		d.pump(bufio.NewReaderSize(server, 1<<16), l.switchEnd, ToSwitch, l)
	})
	d.pump(fromSwitch, server, ToServer, l)
}

// waitOpen waits until the door is open; it returns false when the switch has
// given up before. The first byte is read ahead to notice that.
func (d *door) waitOpen(l *link, fromSwitch *bufio.Reader) bool {
	for {
		d.mu.Lock()
		opened := d.opened
		d.mu.Unlock()
		if isClosed(opened) {
			return true
		}
		left := make(chan struct{})
		d.relay.running.Go(func() {
			defer close(left)
			// All that a waiting switch sends is its hello; reading on
			// behind it shows when it leaves.
			if _, err := fromSwitch.Peek(fromSwitch.Size()); err != nil && !isTimeout(err) {
				d.end(l)
			}
		})
		select {
		case <-opened:
			_ = l.switchEnd.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
			<-left
			if isClosed(l.gone) {
				return false
			}
			_ = l.switchEnd.SetReadDeadline(time.Time{})
		case <-l.gone:
			<-left
			return false
		case <-d.relay.closing:
			d.end(l)
			<-left
			return false
		}
	}
}

// pump forwards whole messages as long as they are OpenFlow, and bytes behind
// the first that is not.
func (d *door) pump(from *bufio.Reader, to net.Conn, direction Direction, l *link) {
	for {
		message, err := readFrame(from)
		if err == nil {
			d.freezeAt(newFrame(d.name, direction, message))
		}
		if !d.waitFlow(l) {
			return
		}
		if len(message) > 0 {
			if err == nil {
				if d.isLast(d.relay.record(d.name, direction, message)) {
					return
				}
			}
			if _, err := to.Write(message); err != nil {
				return
			}
		}
		if errors.Is(err, errNoFrame) {
			_, _ = io.Copy(to, from)
			return
		}
		if err != nil {
			return
		}
	}
}

func (d *door) cutWhen(match func(Frame) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = match
}

func (d *door) isLast(f Frame) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil || !d.last(f) {
		return false
	}
	d.last = nil
	return true
}

func (d *door) freezeWhen(match func(Frame) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ice = match
}

func (d *door) freezeAt(f Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ice == nil || !d.ice(f) {
		return
	}
	d.ice = nil
	d.freezeLocked()
}

func (d *door) waitFlow(l *link) bool {
	d.mu.Lock()
	flow := d.flow
	d.mu.Unlock()
	select {
	case <-flow:
		return true
	case <-l.gone:
		return false
	}
}

func (d *door) end(l *link) {
	l.once.Do(func() {
		close(l.gone)
		_ = l.switchEnd.Close()
		d.mu.Lock()
		server := l.serverEnd
		delete(d.links, l)
		d.mu.Unlock()
		if server != nil {
			_ = server.Close()
		}
	})
}

func (d *door) hold() {
	d.mu.Lock()
	if isClosed(d.opened) {
		d.opened = make(chan struct{})
	}
	d.mu.Unlock()
	d.cut()
}

func (d *door) admit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !isClosed(d.opened) {
		close(d.opened)
	}
}

func (d *door) freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freezeLocked()
}

func (d *door) freezeLocked() {
	if isClosed(d.flow) {
		d.flow = make(chan struct{})
	}
}

func (d *door) thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !isClosed(d.flow) {
		close(d.flow)
	}
}

func (d *door) cut() {
	d.mu.Lock()
	links := make([]*link, 0, len(d.links))
	for l := range d.links {
		links = append(links, l)
	}
	d.mu.Unlock()
	for _, l := range links {
		d.end(l)
	}
}

func (d *door) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	_ = d.ln.Close()
	d.cut()
}

func (d *door) connected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.links {
		if l.serverEnd != nil {
			return true
		}
	}
	return false
}

func (d *door) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for l := range d.links {
		if l.serverEnd == nil {
			n++
		}
	}
	return n
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
