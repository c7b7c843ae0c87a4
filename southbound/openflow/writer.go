package openflow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"kvnet/southbound/openflow/wire"
)

// outbox is what waits to be written. All of it is bounded.
type outbox struct {
	// queue holds what is sent by others, in order.
	queue chan []byte
	// urgent holds what the reader sends: it overtakes the queue, so that an echo
	// is answered while a bundle waits. An empty message is the last one.
	urgent chan []byte
	// role is the newest role request. It overtakes both; a newer one replaces
	// one that isn't written yet.
	role atomic.Pointer[[]byte]
	wake chan struct{}
}

func newOutbox(n int) outbox {
	return outbox{queue: make(chan []byte, n), urgent: make(chan []byte, 16), wake: make(chan struct{}, 1)}
}

// enqueue waits for room in the queue.
func (s *Session) enqueue(ctx context.Context, b []byte) error {
	select {
	case s.out.queue <- b:
		return nil
	case <-s.done:
		return s.closedErr()
	case <-ctx.Done():
		return fmt.Errorf("send to switch %s: %w", s.dpid, ctx.Err())
	}
}

// sendUrgent is for the reader. It may wait for the writer, which never waits for
// the reader and for the switch no longer than the write timeout.
func (s *Session) sendUrgent(b []byte) {
	select {
	case s.out.urgent <- b:
	case <-s.done:
	}
}

func (s *Session) sendRole(b []byte) {
	s.out.role.Store(&b)
	select {
	case s.out.wake <- struct{}{}:
	default:
	}
}

// Send queues a message, for example a packet-out. It doesn't wait: it fails if
// the queue is full. A refusal by the switch is only logged.
func (s *Session) Send(ctx context.Context, m Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send to switch %s: %w", s.dpid, err)
	}
	if s.ended() {
		return s.closedErr()
	}
	if !s.master() {
		return fmt.Errorf("switch %s: %w", s.dpid, ErrNotMaster)
	}
	select {
	case s.out.queue <- appendMessage(make([]byte, 0, len(m.bytes)), s.calls.newXID(), m):
		return nil
	default:
		return fmt.Errorf("switch %s: %w", s.dpid, ErrQueueFull)
	}
}

// farewell writes a last message and ends the session.
func (s *Session) farewell(b []byte) {
	s.sendUrgent(b)
	s.sendUrgent([]byte{})
	<-s.done
}

var errFarewell = errors.New("this server has taken its leave")

// deadlineWriter gives each write to the connection its deadline.
type deadlineWriter struct {
	conn    net.Conn
	timeout time.Duration
}

func (w deadlineWriter) Write(b []byte) (int, error) {
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.conn.Write(b)
}

// writeLoop writes until the session ends. It also keeps watch over the switch.
func (s *Session) writeLoop() {
	w := bufio.NewWriterSize(deadlineWriter{s.conn, s.cfg.WriteTimeout}, 16<<10)
	watch := watch{s: s}
	tick := time.NewTicker(min(s.cfg.EchoInterval, s.cfg.EchoTimeout, s.cfg.HandshakeTimeout) / 4)
	defer tick.Stop()
	for {
		b, ok := s.next(tick.C)
		if !ok {
			return
		}
		if b == nil {
			var err error
			if b, err = watch.check(time.Now()); err != nil {
				s.close(err)
				return
			}
		}
		_, err := w.Write(b)
		last := b != nil && len(b) == 0
		if err == nil && (last || s.out.idle()) {
			err = w.Flush()
		}
		switch {
		case err != nil:
			s.close(fmt.Errorf("write to the switch: %w", err))
			return
		case last:
			s.close(errFarewell)
			return
		}
	}
}

// next waits for what is to be written; nil says that it is time for the watch.
func (s *Session) next(tick <-chan time.Time) (b []byte, ok bool) {
	for {
		if r := s.out.role.Swap(nil); r != nil {
			return *r, true
		}
		select {
		case b := <-s.out.urgent:
			return b, true
		default:
		}
		select {
		case b := <-s.out.urgent:
			return b, true
		case b := <-s.out.queue:
			return b, true
		case <-s.out.wake:
		case <-tick:
			return nil, true
		case <-s.done:
			return nil, false
		}
	}
}

// idle tells whether nothing waits to be written.
func (o *outbox) idle() bool {
	return len(o.queue) == 0 && len(o.urgent) == 0 && o.role.Load() == nil
}

// watch asks a silent switch for a sign of life and finds a switch that gives
// none, or that doesn't answer a role request.
type watch struct {
	s    *Session
	echo time.Time // when a sign of life was asked for; zero: it isn't
}

// check returns what is to be written now, which may be nothing.
func (w *watch) check(now time.Time) ([]byte, error) {
	if at := w.s.roles.waitingSince(); !at.IsZero() && now.Sub(at) > w.s.cfg.HandshakeTimeout {
		return nil, fmt.Errorf("the switch didn't answer a role request for %s", w.s.cfg.HandshakeTimeout)
	}
	read := time.Unix(0, w.s.lastRead.Load())
	switch {
	case !w.echo.IsZero() && read.After(w.echo):
		w.echo = time.Time{}
	case !w.echo.IsZero() && now.Sub(w.echo) > w.s.cfg.EchoTimeout:
		return nil, fmt.Errorf("the switch gave no sign of life for %s", now.Sub(read).Round(time.Millisecond))
	case w.echo.IsZero() && now.Sub(read) > w.s.cfg.EchoInterval:
		w.echo = now
		return newMessage(wire.TypeEchoRequest, w.s.calls.newXID(), nil), nil
	}
	return nil, nil
}
