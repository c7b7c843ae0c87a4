package main

import (
	"context"

	"kvnet/cluster/store"
	"kvnet/southbound/openflow"
)

// askMaster asks the switches for the role MASTER under a term.
func (s *server) askMaster(t store.Term) {
	s.roles.Lock()
	defer s.roles.Unlock()
	s.master = true
	s.of.SetRole(openflow.Role{Master: true, Generation: t.Generation()})
}

// askSlave asks the switches for the role SLAVE under the newest of t and the term
// that was read. Unless this server's own lead ends it does nothing while it leads.
func (s *server) askSlave(t store.Term, ended bool) {
	s.roles.Lock()
	defer s.roles.Unlock()
	if s.master && !ended {
		return
	}
	s.master = false
	read, _ := s.store.Leader()
	if generation := max(t.Generation(), read.Generation()); generation != 0 {
		s.of.SetRole(openflow.Role{Generation: generation})
	}
}

// followTerm asks the switches for the role SLAVE whenever another server has
// begun to lead, so that sessions are warm and may not write. A server that is
// alone is about to lead, and asks for nothing before.
func (s *server) followTerm(ctx context.Context) error {
	for {
		t, changed := s.store.Leader()
		if t.Name != "" && t.Instance != s.leadership.Instance() && s.others() {
			s.askSlave(t, false)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
