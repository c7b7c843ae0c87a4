package openflow

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvnet/internal/pause"
	"kvnet/model"
)

// Server accepts the connections of switches.
type Server struct {
	cfg  Config
	role atomic.Pointer[Role] // nil until SetRole

	refused     complaints
	tlsFailures atomic.Uint64

	// mu guards sessions. It is held over memory operations only.
	mu       sync.Mutex
	sessions map[model.DPID]*Session // identified ones, the newest of a datapath id
}

// NewServer makes a Server that has no role yet: its sessions stay EQUAL, write
// nothing and ignore packets.
func NewServer(c Config) *Server {
	orElse(&c.EchoInterval, 5*time.Second)
	orElse(&c.EchoTimeout, 10*time.Second)
	orElse(&c.WriteTimeout, 10*time.Second)
	orElse(&c.HandshakeTimeout, 10*time.Second)
	orElse(&c.QueueLen, 1024)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: c, sessions: map[model.DPID]*Session{}}
}

func orElse[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Serve accepts connections from ln until ctx ends, which ends all sessions that
// came from it. It may be called for several listeners at once; it closes ln. With
// a listener of crypto/tls (see NewTLS) a session begins after the TLS handshake.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if conn != nil {
				conn.Close()
			}
			return nil
		case err == nil:
			sessions.Go(func() { s.serve(ctx, conn) })
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept connections of switches on %s: %w", ln.Addr(), err)
		default:
			// Too many open files, a connection reset before it was accepted:
			// nothing that ends a listener.
			s.cfg.Logger.Warn("can't accept a switch's connection", "listener", ln.Addr().String(), "error", err)
			if !pause.For(ctx, 100*time.Millisecond) {
				return nil
			}
		}
	}
}

// serve runs one connection to its end.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok && !s.secure(ctx, t) {
		return
	}
	ses := newSession(s, conn)
	stop := context.AfterFunc(ctx, func() { ses.close(errors.New("this server stops")) })
	defer stop()
	ses.run()
}

// SetRole asks all switches, present and future ones, for a role.
func (s *Server) SetRole(r Role) {
	s.role.Store(&r)
	for _, ses := range s.all() {
		ses.requestRole()
	}
}

// Session returns the session with a switch, or nil if there is none or its
// ports aren't known yet.
func (s *Server) Session(d model.DPID) *Session {
	s.mu.Lock()
	ses := s.sessions[d]
	s.mu.Unlock()
	if ses == nil || !ses.ready() {
		return nil
	}
	return ses
}

// Sessions lists the sessions whose ports are known, in the order of their
// datapath ids.
func (s *Server) Sessions() []*Session {
	return slices.DeleteFunc(s.all(), func(ses *Session) bool { return !ses.ready() })
}

func (s *Server) all() []*Session {
	s.mu.Lock()
	out := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b *Session) int {
		if a.dpid < b.dpid {
			return -1
		}
		return 1
	})
	return out
}

// register makes ses the session of its datapath id. A living session of the
// same datapath id from another address stays, and ses is refused; one from the
// same address is a connection that the switch has given up, and is replaced. It
// is returned: ses has to wait until it is gone.
func (s *Server) register(ses *Session) (replaced *Session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.sessions[ses.dpid]
	if old != nil && !old.ended() && host(old.conn) != host(ses.conn) {
		return nil, fmt.Errorf("switch %s is connected from %s already", ses.dpid, old.RemoteAddr())
	}
	s.sessions[ses.dpid] = ses
	return old, nil
}

func (s *Server) unregister(ses *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[ses.dpid] == ses {
		delete(s.sessions, ses.dpid)
	}
}

// host is the remote address of a connection without its port.
func host(c net.Conn) string {
	a := c.RemoteAddr().String()
	if h, _, err := net.SplitHostPort(a); err == nil {
		return h
	}
	return a
}
