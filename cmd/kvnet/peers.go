package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
)

const (
	statusInterval = time.Second
	statusTimeout  = time.Second
	// statusFresh is how old what a member said may be to count.
	statusFresh = 3 * time.Second
)

// status is what a server says about itself to the others.
type status struct {
	Term     uint32 `json:"term"`
	Leading  bool   `json:"leading"`
	Quorum   bool   `json:"quorum"`
	Learner  bool   `json:"learner"`
	Lag      int64  `json:"lag"`
	Switches int    `json:"switches"`
	Version  string `json:"version"`
}

// heard is a status and when it was asked for.
type heard struct {
	status
	at time.Time
}

func (h heard) fresh() bool { return time.Since(h.at) < statusFresh }

// peers is what is known of the other servers.
type peers struct {
	mu     sync.Mutex
	stored []store.Member   // members of the store
	heard  map[string]heard // by name
}

// get returns what the server of a name said last.
func (p *peers) get(name string) heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[name]
}

func (p *peers) members() []store.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored
}

func (p *peers) setMembers(m []store.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = m
}

func (p *peers) set(name string, h heard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard == nil {
		p.heard = map[string]heard{}
	}
	p.heard[name] = h
}

// keep forgets what servers said that are not among those.
func (p *peers) keep(names map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.heard {
		if !names[n] {
			delete(p.heard, n)
		}
	}
}

// status is this server's own.
func (s *server) status() status {
	out := status{Version: version, Leading: s.leading.Load() != nil, Quorum: true}
	st := s.opened.Load()
	if st == nil {
		return status{Version: version, Learner: true}
	}
	t, _ := st.Leader()
	out.Term = t.Term
	out.Lag = s.lag.revisions(s.db.Snapshot().Revision())
	if h, ok := st.Health(); ok {
		out.Quorum, out.Learner = h.Quorum, h.Learner
	}
	out.Switches = len(s.of.Sessions())
	return out
}

func (s *server) serveStatus(context.Context, gossip.Member, []byte) ([]byte, error) {
	return json.Marshal(s.status())
}

// beMember asks the other members for their status again and again, and follows
// who the members are.
func (s *server) beMember(ctx context.Context) error {
	g := s.gossip.Load()
	if g == nil {
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.seekVote(ctx) })
	for {
		s.lookAtMembers(ctx, g)
		changed := g.Changes()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(statusInterval):
		}
	}
}

func (s *server) lookAtMembers(ctx context.Context, g *gossip.Gossip) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if members, err := s.store.Members(ctx); err == nil {
		s.forgetRemoved(g, members)
		s.peers.setMembers(members)
		g.SetSize(len(members))
	}
	names := map[string]bool{}
	var wg sync.WaitGroup
	for _, m := range g.Members() {
		if m.Name == s.c.name || m.State != gossip.Alive || m.Meta.ClusterID == "" && !s.stored(m.Name) {
			continue
		}
		names[m.Name] = true
		wg.Go(func() {
			asked := time.Now()
			b, err := g.Call(ctx, m.Name, statusKind, nil)
			var st status
			if err == nil && json.Unmarshal(b, &st) == nil {
				s.peers.set(m.Name, heard{st, asked})
			}
		})
	}
	wg.Wait()
	s.peers.keep(names)
}

// stored tells whether the server of the name is a member of the store.
func (s *server) stored(name string) bool {
	for _, m := range s.peers.members() {
		if m.Name == name {
			return true
		}
	}
	return false
}

// forgetRemoved drops servers from the gossip that were members of the store and
// are so no longer.
func (s *server) forgetRemoved(g *gossip.Gossip, now []store.Member) {
	left := map[string]bool{}
	for _, m := range now {
		left[m.Name] = true
	}
	for _, m := range s.peers.members() {
		if !left[m.Name] && m.Name != "" {
			g.Forget(m.Name)
		}
	}
}

// voters is the number of servers that decide together: 1 for one that is alone.
func (s *server) voters() int {
	if h, ok := s.store.Health(); ok {
		return max(h.Voters, 1)
	}
	return max(s.c.bootstrapExpect, 1)
}

// others tells whether there are, or may be, other servers that could lead.
func (s *server) others() bool {
	if s.gossip.Load() == nil {
		return false
	}
	h, embedded := s.store.Health()
	return !embedded || h.Voters > 1 || h.Learner
}
