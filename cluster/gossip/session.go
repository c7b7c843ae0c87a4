package gossip

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"kvnet/internal/pause"
)

// sessions keeps one stream open between this server and each other member. It
// carries nothing: its end tells at once that the other process may have died.
// Of two servers, the one with the lower name dials.
type sessions struct {
	id      identity
	view    *view
	dial    func(addr string, timeout time.Duration) (net.Conn, error)
	refused func(*RefusedError)
	lost    func(dead bool)

	mu      sync.Mutex
	open    map[string]*session
	dialing map[string]uint64 // the life of each that is being dialled
	wg      sync.WaitGroup
}

type session struct {
	net.Conn
	instance uint64
	replaced bool // by a newer one; guarded by sessions.mu
}

const (
	// maxSessions bounds the sessions; only holders of the key can open one.
	maxSessions = 256
	// handshakeTime is how long the proof of the key may take.
	handshakeTime = 2 * time.Second
	// sessionPause is between two attempts to open sessions that are missing.
	sessionPause = time.Second
)

// checkPauses are the pauses between the dials that follow the end of a session.
// A process that dies may close its session a moment before its port, and a busy
// machine makes that moment long.
var checkPauses = []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// run opens sessions until ctx ends, and then closes them.
func (s *sessions) run(ctx context.Context) {
	tick := time.NewTicker(sessionPause)
	defer tick.Stop()
	for {
		members, changed := s.view.members()
		for _, m := range alive(members) {
			if m.Name > s.id.name {
				s.reach(ctx, m)
			}
		}
		select {
		case <-changed:
			// A member that can't be reached is not dialled at each change: see
			// dialing.
		case <-tick.C:
		case <-ctx.Done():
			s.mu.Lock()
			for _, x := range s.open {
				x.Close()
			}
			s.mu.Unlock()
			s.wg.Wait()
			return
		}
	}
}

// reach opens a session with m unless there is one or somebody tries already.
func (s *sessions) reach(ctx context.Context, m Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.open[m.Name]; x != nil && x.instance == m.Meta.Instance {
		return
	}
	// That a life which has ended didn't answer says nothing of the next one.
	if life, ok := s.dialing[m.Name]; ok && life == m.Meta.Instance || len(s.dialing) >= maxSessions {
		return
	}
	s.dialing[m.Name] = m.Meta.Instance
	s.wg.Go(func() {
		if x := s.connect(ctx, m); x != nil {
			s.hold(ctx, m.Name, x)
			return
		}
		// The mark stays for a moment, so that a member that can't be reached
		// is not dialled at each change of the view.
		pause.For(ctx, sessionPause/2)
		s.mu.Lock()
		if s.dialing[m.Name] == m.Meta.Instance {
			delete(s.dialing, m.Name)
		}
		s.mu.Unlock()
	})
}

func (s *sessions) connect(ctx context.Context, m Member) *session {
	c, err := s.dial(m.Address, handshakeTime)
	if err != nil {
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(handshakeTime))
	instance, err := dialHandshake(c, s.id, m.Name)
	if err != nil || ctx.Err() != nil {
		c.Close()
		return nil
	}
	return &session{Conn: c, instance: instance}
}

// accept takes over an incoming stream whose first byte was sessionMagic.
func (s *sessions) accept(ctx context.Context, c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(handshakeTime))
	name, instance, err := acceptHandshake(c, s.id)
	if err != nil {
		c.Close()
		if ctx.Err() == nil {
			s.refused(&RefusedError{Name: name, Address: c.RemoteAddr().String(), Reason: SessionForged, Text: err.Error()})
		}
		return
	}
	s.hold(ctx, name, &session{Conn: c, instance: instance})
}

// hold waits for the end of a session and then looks whether the member lives.
func (s *sessions) hold(ctx context.Context, name string, x *session) {
	defer x.Close()
	_ = x.SetDeadline(time.Time{})
	s.mu.Lock()
	delete(s.dialing, name)
	old := s.open[name]
	if old == nil && len(s.open) >= maxSessions || ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	if old != nil {
		old.replaced = true
		old.Close()
	}
	s.open[name] = x
	s.mu.Unlock()
	if m, ok := s.view.get(name); ok && m.Meta.Instance == x.instance {
		s.view.heard(name, time.Now())
	}

	_, _ = x.Read(make([]byte, 1)) // nothing ever comes

	s.mu.Lock()
	replaced := x.replaced
	if !replaced {
		delete(s.open, name)
	}
	s.mu.Unlock()
	x.Close()
	if !replaced && ctx.Err() == nil {
		s.check(ctx, name, x.instance)
	}
}

// check dials the member whose session has ended. If its machine says that
// nobody listens there, the process is dead. Any other outcome is left to
// memberlist.
func (s *sessions) check(ctx context.Context, name string, instance uint64) {
	dead := false
	for _, p := range checkPauses {
		if !pause.For(ctx, p) {
			return
		}
		m, ok := s.view.get(name)
		if !ok || m.State != Alive || m.Meta.Instance != instance {
			return
		}
		c, err := s.dial(m.Address, handshakeTime)
		if err == nil {
			c.Close()
			continue
		}
		if dead = nobodyListens(err) && ctx.Err() == nil; dead {
			s.view.refuse(name, instance)
		}
		// A process that dies may also reset what its machine has let in.
		if dead || !errors.Is(err, syscall.ECONNRESET) {
			break
		}
	}
	s.lost(dead)
}
