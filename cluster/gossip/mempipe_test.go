package gossip

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// memConn is one end of a stream in memory. Unlike net.Pipe it has a buffer, as
// a socket has, so that both ends may write first.
type memConn struct {
	remote   memAddr
	in, out  *memHalf
	deadline *memDeadline
}

// memHalf is one direction of a stream.
type memHalf struct {
	mu     sync.Mutex
	more   *sync.Cond
	buf    []byte
	closed bool
}

// memDeadline is when an end's reads give up.
type memDeadline struct {
	at    time.Time
	timer *time.Timer
}

func memPipe(a, b memAddr) (atA, atB *memConn) {
	x, y := &memHalf{}, &memHalf{}
	x.more, y.more = sync.NewCond(&x.mu), sync.NewCond(&y.mu)
	return &memConn{b, x, y, &memDeadline{}}, &memConn{a, y, x, &memDeadline{}}
}

func (c *memConn) Read(b []byte) (int, error) {
	h := c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.buf) == 0 {
		if h.closed {
			return 0, io.EOF
		}
		if at := c.deadline.at; !at.IsZero() && !time.Now().Before(at) {
			return 0, os.ErrDeadlineExceeded
		}
		h.more.Wait()
	}
	n := copy(b, h.buf)
	h.buf = h.buf[n:]
	return n, nil
}

func (c *memConn) Write(b []byte) (int, error) {
	h := c.out
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, net.ErrClosed
	}
	h.buf = append(h.buf, b...)
	h.more.Broadcast()
	return len(b), nil
}

func (c *memConn) Close() error {
	for _, h := range []*memHalf{c.in, c.out} {
		h.mu.Lock()
		h.closed = true
		h.more.Broadcast()
		h.mu.Unlock()
	}
	return c.SetDeadline(time.Time{})
}

func (c *memConn) SetDeadline(t time.Time) error {
	h := c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.deadline.timer != nil {
		c.deadline.timer.Stop()
	}
	c.deadline.at, c.deadline.timer = t, nil
	if !t.IsZero() {
		c.deadline.timer = time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.more.Broadcast()
		})
	}
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }
func (c *memConn) SetWriteDeadline(time.Time) error  { return nil } // writing never waits
func (c *memConn) LocalAddr() net.Addr               { return memAddr("local") }
func (c *memConn) RemoteAddr() net.Addr              { return c.remote }
