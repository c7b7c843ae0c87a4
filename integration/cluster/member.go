package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// Member is a server on a machine of its own, with the relay through which all
// switches speak to it.
type Member struct {
	*server.Server
	Relay *relay.Relay

	number   int             // from 0: which of the switches' controllers it is
	renamed  map[string]bool // which of two names of its socket a switch uses
	filtered bool            // there is a filter for cuts
	frozen   bool            // paused by SIGSTOP
}

// Pause stops the server's process as by SIGSTOP.
func (m *Member) Pause() error {
	m.frozen = true
	return m.Signal(syscall.SIGSTOP)
}

// Resume lets a paused server go on.
func (m *Member) Resume() error {
	m.frozen = false
	return m.Signal(syscall.SIGCONT)
}

// Serving tells whether the server is running and not paused.
func (m *Member) Serving() bool { return m.Running() && !m.frozen }

// end stops the server and its relay.
func (m *Member) end() error {
	var errs []error
	if m.frozen && m.Running() {
		errs = append(errs, m.Resume())
	}
	errs = append(errs, m.Stop())
	m.Relay.Close()
	return errors.Join(append(errs, m.CheckLog())...)
}

// StoreLeads tells whether the leader of the store's engine runs in this member.
func (m *Member) StoreLeads(ctx context.Context) (bool, error) {
	v, ok, err := m.Metric(ctx, "kvnet_store_leads")
	if err == nil && !ok {
		err = errors.New("it has no metric kvnet_store_leads")
	}
	if err != nil {
		return false, fmt.Errorf("ask %s for the store's leader: %w", m.Name, err)
	}
	return v == 1, nil
}

// View is what a member says about a member.
type View struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	State   string `json:"state"`
	Leader  bool   `json:"leader"`
	// Of a member that doesn't answer they are not known.
	Term *uint64 `json:"term,omitempty"`
	Lag  *int64  `json:"lag,omitempty"`
}

// View reads what the member knows of all.
func (m *Member) View(ctx context.Context) ([]View, error) {
	var answer struct {
		Members []View `json:"members"`
	}
	err := m.Read(ctx, "/kvnet/v1/members", &answer)
	return answer.Members, err
}

// leads tells whether the member takes itself for the leader, and since which term.
func (m *Member) leads(ctx context.Context) (bool, uint64, error) {
	views, err := m.View(ctx)
	if err != nil {
		return false, 0, err
	}
	for _, v := range views {
		if v.Name == m.Name && v.Term != nil {
			return v.Leader, *v.Term, nil
		}
	}
	return false, 0, fmt.Errorf("%s doesn't name itself among the members %+v", m.Name, views)
}
