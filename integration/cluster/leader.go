package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Await calls check until it returns nil or limit is over.
func Await(ctx context.Context, limit time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w)", what, err, ctx.Err())
		case <-tick.C:
		}
	}
}

// Leader is the one member that says of itself that it leads.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	return c.LeaderAmong(ctx, c.Serving())
}

// LeaderAmong is the one of these members that says of itself that it leads.
func (*Cluster) LeaderAmong(ctx context.Context, members []*Member) (*Member, error) {
	var leader *Member
	var errs []error
	for _, m := range members {
		leads, _, err := m.leads(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		if leads && leader != nil {
			return nil, fmt.Errorf("%s and %s both say that they lead", leader.Name, m.Name)
		}
		if leads {
			leader = m
		}
	}
	if leader == nil {
		return nil, errors.Join(append(errs, errors.New("nobody leads"))...)
	}
	return leader, nil
}

// WaitLeader waits for a leader that is MASTER of all switches.
func (c *Cluster) WaitLeader(ctx context.Context, limit time.Duration) (leader *Member, err error) {
	err = Await(ctx, limit, "a leader", func() (err error) {
		if leader, err = c.Leader(ctx); err != nil {
			return err
		}
		return c.masters(ctx, leader)
	})
	return leader, err
}

// masters checks that the member is MASTER of all switches.
func (c *Cluster) masters(ctx context.Context, m *Member) error {
	var answer struct {
		Switches []struct{ ID, Role string } `json:"switches"`
	}
	if err := m.Read(ctx, "/kvnet/v1/switches", &answer); err != nil {
		return err
	}
	n := 0
	for _, s := range answer.Switches {
		if s.Role == "MASTER" {
			n++
		}
	}
	if n != len(c.Controlled) {
		return fmt.Errorf("%s is MASTER of %d switches of %d", m.Name, n, len(c.Controlled))
	}
	return nil
}

// Followers are the members that run and aren't the leader.
func (c *Cluster) Followers(leader *Member) (out []*Member) {
	for _, m := range c.Serving() {
		if m != leader {
			out = append(out, m)
		}
	}
	return out
}

// WaitMasters waits until all switches have told a server other than old that it
// is MASTER now, and returns the time that passed from the mark until the last of
// them did.
func (c *Cluster) WaitMasters(ctx context.Context, mark Mark, old *Member) (took time.Duration, err error) {
	err = Await(ctx, masterTime, "another server as MASTER of all switches", func() error {
		masters := c.Masters(mark, old)
		if len(masters) < len(c.Controlled) {
			return fmt.Errorf("%d switches of %d have one: %v", len(masters), len(c.Controlled), masters)
		}
		for _, t := range masters {
			took = max(took, t)
		}
		return nil
	})
	return took, err
}

// masterTime is what a change of the leader may take at most.
const masterTime = 30 * time.Second
