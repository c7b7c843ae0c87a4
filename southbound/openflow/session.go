package openflow

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kvnet/model"
	"kvnet/southbound/openflow/wire"
)

// Session is the connection of a switch. One goroutine reads, and calls Observer
// and Events; one writes. Its methods may be called from any goroutine.
type Session struct {
	srv  *Server
	cfg  *Config
	conn net.Conn
	log  *slog.Logger
	dpid model.DPID // set before the session is registered

	out      outbox
	calls    calls
	lastRead atomic.Int64 // Unix nanoseconds

	done    chan struct{} // closed when the session ends
	gone    chan struct{} // closed after the last callback
	endOnce sync.Once
	endErr  error // set before done is closed

	// Only the reader uses what follows.
	stage stage
	xid   uint32 // of the request of the present stage
	ports map[uint32]model.SwitchPort

	roles roles
}

func newSession(srv *Server, conn net.Conn) *Session {
	s := &Session{
		srv: srv, cfg: &srv.cfg, conn: conn,
		log:  srv.cfg.Logger.With("address", conn.RemoteAddr().String()),
		out:  newOutbox(srv.cfg.QueueLen),
		done: make(chan struct{}), gone: make(chan struct{}),
		ports: map[uint32]model.SwitchPort{},
	}
	s.roles.role = model.RoleEqual
	s.calls.waiting = map[uint32]*call{}
	s.lastRead.Store(time.Now().UnixNano())
	return s
}

// DPID is the datapath id of the switch.
func (s *Session) DPID() model.DPID { return s.dpid }

// RemoteAddr is the address of the switch, host:port.
func (s *Session) RemoteAddr() string { return s.conn.RemoteAddr().String() }

// overTLS tells whether the connection is over TLS.
func (s *Session) overTLS() bool {
	_, ok := s.conn.(*tls.Conn)
	return ok
}

// transport names the way in which the switch is connected, as in "TLS 1.3".
func (s *Session) transport() string {
	if t, ok := s.conn.(*tls.Conn); ok {
		return tls.VersionName(t.ConnectionState().Version)
	}
	return "TCP"
}

// Done is closed when the session ends.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session. The switch will connect again.
func (s *Session) Close(reason string) { s.close(errors.New(reason)) }

func (s *Session) close(err error) {
	s.endOnce.Do(func() {
		s.endErr = err
		close(s.done)
		conn := s.conn
		if t, ok := conn.(*tls.Conn); ok {
			// Closing the TLS connection would wait for a peer that reads.
			conn = t.NetConn()
		}
		conn.Close()
	})
}

func (s *Session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// closedErr is the error for whoever waits for a session that ended.
func (s *Session) closedErr() error {
	return fmt.Errorf("switch %s: %w: %w", s.dpid, ErrClosed, s.endErr)
}

// run reads until the session ends and then tidies up.
func (s *Session) run() {
	defer close(s.gone)
	var writer sync.WaitGroup
	writer.Go(s.writeLoop)
	err := s.readLoop()
	s.close(err)
	writer.Wait()
	s.finish()
}

func (s *Session) readLoop() error {
	if err := s.conn.SetReadDeadline(time.Now().Add(s.cfg.HandshakeTimeout)); err != nil {
		return err
	}
	s.out.urgent <- hello(s.calls.newXID())
	r := wire.NewReader(s.conn)
	r.Check = s.check
	for {
		h, msg, err := r.Next()
		if err != nil {
			return fmt.Errorf("read from the switch: %w", err)
		}
		s.lastRead.Store(time.Now().UnixNano())
		if err := s.handle(h, msg); err != nil {
			return err
		}
	}
}

// finish tells everybody that the session is over.
func (s *Session) finish() {
	if s.dpid == 0 {
		s.log.Warn("connection ended before the switch was known", "error", s.endErr)
		return
	}
	if s.stage == stageRefused {
		s.log.Warn("switch refused", "switch", s.dpid.String(), "error", s.endErr)
		return
	}
	s.log.Info("switch disconnected", "reason", s.endErr)
	if s.roles.announced {
		s.cfg.Observer.SwitchDisconnected(s.dpid, s.endErr.Error())
	}
	s.cfg.Events.SessionDown(s, s.endErr)
	// Only now: a new session of the switch waits for one that is registered, so
	// that nobody hears of the end of the old one after the beginning of the new.
	s.srv.unregister(s)
}

// withDeadline gives ctx a deadline if it has none, so that nothing waits for
// ever for a switch.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, 30*time.Second)
}
