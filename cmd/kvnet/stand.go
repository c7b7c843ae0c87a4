package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvnet/cluster/gossip"
	"kvnet/cluster/leader"
	"kvnet/internal/pause"
)

const (
	// handOverTimeout bounds how long a server that stops looks for a successor,
	// takeOverTimeout how long one of them may take.
	handOverTimeout = 2 * time.Second
	takeOverTimeout = time.Second
	standLook       = 500 * time.Millisecond
	// unfitFor is how long a recorded leader that is alive may be without a term.
	unfitFor = 5 * time.Second
)

// The timing of a server that is alone: nobody waits to lead in its place, so a
// slow disk must not cost it its term. It is that of an external store, too, whose
// elections take as long as they do.
const (
	aloneCheckInterval = time.Second
	alonePatience      = 5 * time.Second
)

func (s *server) timing() (checkInterval, patience time.Duration) {
	if h, ok := s.store.Health(); ok && h.Voters > 1 {
		return leader.ClusterCheckInterval, leader.ClusterPatience
	}
	return aloneCheckInterval, alonePatience
}

// stand waits until this server should take the lead.
func (s *server) stand(ctx context.Context) error {
	for said := false; ; said = true {
		if err := s.standAmongKnown(ctx); err != nil {
			return err
		}
		stranger := s.stranger()
		if stranger == "" {
			return nil
		}
		if !said {
			s.log.Error("a server that this one doesn't know leads on the same external store; this one doesn't lead before the gossip knows it: start all with --join and --bootstrap-expect", "leader", stranger)
		}
		if !pause.For(ctx, standLook) {
			return context.Cause(ctx)
		}
	}
}

// stranger names the leader if that isn't known to the gossip, but has taken the
// lead while this server was running: it lives. Only servers on an external store
// can fail to know each other. They would take the lead from each other in turn.
func (s *server) stranger() string {
	if _, embedded := s.store.Health(); embedded {
		return ""
	}
	t, _ := s.store.Leader()
	if t.Name == s.c.name || t.Generation() <= s.found {
		return ""
	}
	if g := s.gossip.Load(); g != nil {
		for _, m := range g.Members() {
			if m.Name == t.Name {
				return ""
			}
		}
	}
	return t.Name
}

// standAmongKnown waits until this server is alone, or the gossip's candidate, or
// the leader has asked it to take over, or the recorded leader can't lead although
// it is alive.
func (s *server) standAmongKnown(ctx context.Context) error {
	look := time.NewTicker(standLook)
	defer look.Stop()
	for s.learner() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
	if !s.others() {
		return context.Cause(ctx)
	}
	standing, cancel := context.WithCancel(ctx)
	defer cancel()
	candidate := make(chan error, 1)
	go func() {
		candidate <- s.gossip.Load().Stand(standing, func() (string, <-chan struct{}) {
			t, changed := s.store.Leader()
			return t.Name, changed
		}, s.voters)
	}()
	var unfit time.Time
	for {
		select {
		case err := <-candidate:
			if errors.Is(err, gossip.ErrClosed) { // this server stops
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return err
		case asked := <-s.takeOver:
			if t, _ := s.store.Leader(); t.Generation() == asked {
				return nil
			}
		case <-look.C:
			switch {
			case !s.unfitLeader():
				unfit = time.Time{}
			case unfit.IsZero():
				unfit = time.Now()
			case time.Since(unfit) > unfitFor:
				return nil
			}
		}
	}
}

// unfitLeader tells whether the recorded leader says of itself that it doesn't
// lead, though the gossip has it among the living, and this server is the first
// that could do it. Its way to the other stores may be cut.
func (s *server) unfitLeader() bool {
	t, _ := s.store.Leader()
	if h, ok := s.store.Health(); ok && !h.Quorum || t.Name == s.c.name {
		return false
	}
	said := s.peers.get(t.Name)
	if !said.fresh() || said.Leading {
		return false
	}
	for _, name := range s.successors() {
		if name == t.Name {
			continue
		}
		return s.c.name < name
	}
	return true
}

// successors are the living servers that could lead in place of this one, sorted
// by name, those first that have a quorum for sure.
func (s *server) successors() []string {
	g := s.gossip.Load()
	if g == nil {
		return nil
	}
	var sure, rest []string
	for _, m := range g.Members() {
		if m.Name == s.c.name || m.State != gossip.Alive || m.Meta.ClusterID != g.ClusterID() {
			continue
		}
		switch said := s.peers.get(m.Name); {
		case said.fresh() && said.Learner:
		case said.fresh() && said.Quorum:
			sure = append(sure, m.Name)
		default:
			rest = append(rest, m.Name)
		}
	}
	slices.Sort(sure)
	slices.Sort(rest)
	return append(sure, rest...)
}

// present tells whether the gossip counts a server as alive. One that stops takes its
// leave before its store does.
func (s *server) present(name string) bool {
	g := s.gossip.Load()
	return g == nil || slices.ContainsFunc(g.Members(), func(m gossip.Member) bool {
		return m.Name == name && m.State == gossip.Alive
	})
}

// takeOverRequest asks a server to lead in place of the sender.
type takeOverRequest struct {
	// Generation is that of the sender's term.
	Generation uint64 `json:"generation"`
	// Switches says that it is because the receiver reaches more switches.
	Switches bool `json:"switches,omitempty"`
}

// askToTakeOver has another server take the lead, and returns when it has it.
func (s *server) askToTakeOver(ctx context.Context, name string, r takeOverRequest) error {
	ctx, cancel := context.WithTimeout(ctx, takeOverTimeout)
	defer cancel()
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.gossip.Load().Call(ctx, name, takeOverKind, b)
	return err
}

// serveTakeOver makes this server stand for the lead that the sender gives up, and
// answers when it has it.
func (s *server) serveTakeOver(ctx context.Context, from gossip.Member, payload []byte) ([]byte, error) {
	st := s.opened.Load()
	if st == nil || s.learner() {
		return nil, errors.New("it has no vote yet")
	}
	var r takeOverRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	asked := false
	for {
		t, changed := st.Leader()
		switch {
		case asked && t.Name == s.c.name && t.Generation() > r.Generation:
			return nil, nil
		case t.Generation() > r.Generation:
			return nil, fmt.Errorf("%q leads under a later term", t.Name)
		case t.Generation() == r.Generation && t.Name != from.Name:
			return nil, fmt.Errorf("%q leads, so %q can't give the lead away", t.Name, from.Name)
		case t.Generation() == r.Generation && !asked:
			asked = true
			if r.Switches {
				s.given.Store(time.Now().UnixNano())
			}
			select {
			case <-s.takeOver: // of an earlier term
			default:
			}
			s.takeOver <- r.Generation
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// handOver gives the lead to another server, if this one has it, and takes leave
// of the others. It takes a bounded time.
func (s *server) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), handOverTimeout)
	defer cancel()
	g := s.gossip.Load()
	if g == nil {
		return
	}
	if t, ok := s.leadership.Term(); ok && s.others() {
		began := time.Now()
		for _, name := range s.successors() {
			err := s.askToTakeOver(ctx, name, takeOverRequest{Generation: t.Generation()})
			if err == nil {
				s.log.Info("another server leads from now on", "name", name, "took", time.Since(began))
				break
			}
			s.log.Warn("another server could not take the lead", "name", name, "error", err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	go func() { _ = g.Close(context.Background()) }() // leave waits for it
}
