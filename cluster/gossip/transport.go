package gossip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport is memberlist's transport with the sessions on the same port: the
// first byte of a stream tells whose it is. It also ends what is open or being
// dialled when it is shut down, which memberlist leaves to timeouts.
type transport struct {
	memberlist.NodeAwareTransport
	dial    func(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error)
	session func(net.Conn) // takes over an incoming session
	refused func(addr string)

	ctx       context.Context
	cancel    context.CancelFunc
	streams   chan net.Conn
	strangers chan struct{} // bounds the streams that have sent nothing yet
	stopped   chan struct{}
	wg        sync.WaitGroup

	mu    sync.Mutex
	conns map[*conn]struct{}
}

const (
	// maxStrangers is the number of incoming streams that may not have sent
	// their first byte yet; firstByte is how long one of them may take.
	maxStrangers = 256
	firstByte    = time.Second
)

// conn is a stream that the transport closes when it is shut down.
type conn struct {
	net.Conn
	t     *transport
	first []byte // read already
}

func (c *conn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *conn) Close() error {
	c.t.mu.Lock()
	delete(c.t.conns, c)
	c.t.mu.Unlock()
	return c.Conn.Close()
}

// byName gives a transport that knows no names the methods with a name.
type byName struct{ memberlist.Transport }

func (t byName) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

func (t byName) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

// newTransport puts a transport round inner. Start must follow.
func newTransport(inner memberlist.Transport) *transport {
	named, ok := inner.(memberlist.NodeAwareTransport)
	if !ok {
		named = byName{inner}
	}
	t := &transport{
		NodeAwareTransport: named,
		streams:            make(chan net.Conn),
		strangers:          make(chan struct{}, maxStrangers),
		stopped:            make(chan struct{}),
		conns:              map[*conn]struct{}{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.dial = func(_ context.Context, addr string, timeout time.Duration) (net.Conn, error) {
		return named.DialTimeout(addr, timeout)
	}
	return t
}

// newSockets listens on host and port for UDP and TCP. With port 0 it takes one
// that is free for both; it returns which one it took.
func newSockets(host string, port int, logger *log.Logger) (t *transport, bound int, err error) {
	var inner *memberlist.NetTransport
	// A port that is free for TCP may be taken for UDP.
	for range 10 {
		inner, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{host}, BindPort: port, Logger: logger,
		})
		if err == nil || port != 0 {
			break
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("listen for the gossip: %w", err)
	}
	t = newTransport(inner)
	t.dial = func(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
		d := net.Dialer{Timeout: timeout}
		return d.DialContext(ctx, "tcp", addr)
	}
	return t, inner.GetAutoBindPort(), nil
}

// start begins to sort incoming streams.
func (t *transport) start(session func(net.Conn), refused func(addr string)) {
	t.session, t.refused = session, refused
	t.wg.Go(func() {
		for {
			select {
			case c := <-t.NodeAwareTransport.StreamCh():
				t.accept(c)
			case <-t.stopped:
				return
			}
		}
	})
}

func (t *transport) accept(c net.Conn) {
	select {
	case t.strangers <- struct{}{}:
	default:
		c.Close()
		t.refused(c.RemoteAddr().String())
		return
	}
	tracked := t.track(c)
	if tracked == nil {
		<-t.strangers
		return
	}
	t.wg.Go(func() { t.sort(tracked) })
}

// sort hands a stream to whom its first byte belongs.
func (t *transport) sort(c *conn) {
	first := make([]byte, 1)
	_ = c.SetReadDeadline(time.Now().Add(firstByte))
	_, err := io.ReadFull(c.Conn, first)
	<-t.strangers
	if err != nil {
		c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if first[0] == sessionMagic {
		t.session(c)
		return
	}
	c.first = first
	select {
	case t.streams <- c:
	case <-t.ctx.Done():
		c.Close()
	}
}

// track notes an open stream. It closes the stream and returns nil if the
// transport is shut down.
func (t *transport) track(c net.Conn) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		c.Close()
		return nil
	}
	out := &conn{Conn: c, t: t}
	t.conns[out] = struct{}{}
	return out
}

// StreamCh returns the streams that are memberlist's.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout opens a stream.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	c, err := t.dial(t.ctx, addr, timeout)
	if err != nil {
		return nil, err
	}
	if out := t.track(c); out != nil {
		return out, nil
	}
	return nil, ErrClosed
}

// DialAddressTimeout opens a stream.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

// Shutdown ends listening and closes all streams, in this order: who sees its
// session end and dials finds nobody.
func (t *transport) Shutdown() error {
	t.cancel()
	// The listeners may be waiting to hand a stream over; start takes it.
	err := t.NodeAwareTransport.Shutdown()
	t.mu.Lock()
	open := t.conns
	t.conns = map[*conn]struct{}{}
	t.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
	close(t.stopped)
	t.wg.Wait()
	return err
}

// nobodyListens says that err means that no process listens at the address that
// was dialled, on a machine that answers.
func nobodyListens(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
