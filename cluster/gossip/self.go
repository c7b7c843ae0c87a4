package gossip

import "fmt"

// ClusterID is the id of the cluster that this server belongs to, or empty.
func (g *Gossip) ClusterID() string { return g.meta().ClusterID }

func (g *Gossip) meta() Meta {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own
}

// SetCluster says which cluster this server belongs to from now on, once it is
// in one. A server never changes its cluster.
func (g *Gossip) SetCluster(id string) error {
	for _, m := range alive(g.Members()) {
		if m.Name != g.c.Name && m.Meta.ClusterID != "" && m.Meta.ClusterID != id {
			return fmt.Errorf("set the cluster %q: the live member %q belongs to the cluster %q", id, m.Name, m.Meta.ClusterID)
		}
	}
	return g.setMeta(func(m *Meta) error {
		if m.ClusterID != "" && m.ClusterID != id || id == "" {
			return fmt.Errorf("set the cluster %q: this server belongs to the cluster %q", id, m.ClusterID)
		}
		m.ClusterID = id
		return nil
	})
}

// UpdateMeta changes what the others know of this server. f must not change
// ClusterID and Instance.
func (g *Gossip) UpdateMeta(f func(m *Meta)) error {
	return g.setMeta(func(m *Meta) error {
		id, instance := m.ClusterID, m.Instance
		f(m)
		m.ClusterID, m.Instance = id, instance
		return nil
	})
}

func (g *Gossip) setMeta(f func(m *Meta) error) error {
	g.mu.Lock()
	m := g.own
	err := f(&m)
	if err == nil {
		_, err = m.encode()
	}
	same := m == g.own
	if err == nil {
		g.own = m
	}
	g.mu.Unlock()
	if err != nil {
		return fmt.Errorf("gossip metadata: %w", err)
	}
	if same {
		return nil
	}
	if g.closing.Err() != nil {
		return ErrClosed
	}
	for range 3 {
		if g.publish() {
			break
		}
	}
	return nil // if the others don't know yet, keepJoined tells them
}

// publish tells the others what they shall know of this server. It returns true
// if nothing is left to tell: memberlist loses an update that coincides with an
// objection to a rumour of this server's death.
func (g *Gossip) publish() bool {
	told := func() bool {
		m, _ := g.view.get(g.c.Name)
		return m.Meta == g.meta()
	}
	if told() {
		return true
	}
	// Memberlist reads what it knows of this server without a lock when it is asked
	// to tell of it, so it is asked by one goroutine at a time.
	select {
	case g.publishing <- struct{}{}:
		defer func() { <-g.publishing }()
	case <-g.closing.Done():
		return false
	}
	if !told() {
		// A timeout means only that the news is still on its way.
		_ = g.ml.UpdateNode(4 * g.gossipInterval)
	}
	return told()
}
