package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kvnet/integration/lab"
	"kvnet/integration/netns"
)

// subnet is the management network's; member i has the host part i.
const subnet = "10.99.0."

// management is the network between the servers: a bridge in a namespace of its
// own, and a wire to each server.
type management struct {
	lab *lab.Lab
	hub *netns.NS
}

func newManagement(ctx context.Context, l *lab.Lab) (*management, error) {
	hub, err := l.AddNamespace(ctx, "mgmt")
	if err != nil {
		return nil, err
	}
	m := &management{l, hub}
	return m, errors.Join(hub.IP(ctx, "link", "add", "br0", "type", "bridge"), hub.IP(ctx, "link", "set", "br0", "up"))
}

// plug makes a namespace with an address on the network.
func (m *management) plug(ctx context.Context, name, address string) (*netns.NS, error) {
	ns, err := m.lab.AddNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	port := "to-" + name
	if err := lab.Veth(ctx, m.hub, port, ns, "eth0"); err != nil {
		return nil, fmt.Errorf("plug %s into the management network: %w", name, err)
	}
	return ns, errors.Join(
		m.hub.IP(ctx, "link", "set", port, "master", "br0"),
		ns.IP(ctx, "addr", "add", address+"/24", "dev", "eth0"),
	)
}

// Protocol narrows a cut.
type Protocol string

// The protocols that a cut can be about.
const (
	Everything Protocol = ""
	UDP        Protocol = "udp"
	TCP        Protocol = "tcp"
)

// CutOneWay makes to hear nothing from from any more. Connections stay open, their
// packets are lost without an answer, as by a broken cable.
func (c *Cluster) CutOneWay(ctx context.Context, from, to *Member, p Protocol) error {
	rule := []string{"ip", "saddr", from.Host}
	if p != Everything {
		rule = append(rule, "meta", "l4proto", string(p))
	}
	return to.drop(ctx, rule...)
}

// Cut parts two members from each other.
func (c *Cluster) Cut(ctx context.Context, a, b *Member, p Protocol) error {
	return errors.Join(c.CutOneWay(ctx, a, b, p), c.CutOneWay(ctx, b, a, p))
}

// Isolate parts a member from all others.
func (c *Cluster) Isolate(ctx context.Context, m *Member, p Protocol) error {
	for _, other := range c.Members {
		if other != m {
			if err := c.Cut(ctx, m, other, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lose has a member lose that part of all packets from others, in percent.
func (c *Cluster) Lose(ctx context.Context, m *Member, percent int) error {
	return m.drop(ctx, "iifname", "eth0", "numgen", "random", "mod", "100", "<", fmt.Sprint(percent))
}

// Silence keeps in all that a member sends, so that others hear nothing of its end
// either, as when its power fails. Filter has to come first, which takes its time.
func (c *Cluster) Silence(ctx context.Context, m *Member) error {
	return m.nft(ctx, "add", "rule", "inet", "faults", "out", "oifname", "eth0", "drop")
}

// Heal ends all cuts and losses.
func (c *Cluster) Heal(ctx context.Context) error {
	var errs []error
	for _, m := range c.Members {
		if m.filtered {
			errs = append(errs, m.nft(ctx, "flush", "table", "inet", "faults"))
		}
	}
	return errors.Join(errs...)
}

// drop adds a rule to what the member's machine takes in.
func (m *Member) drop(ctx context.Context, match ...string) error {
	if err := m.Filter(ctx); err != nil {
		return err
	}
	return m.nft(ctx, append(append([]string{"add", "rule", "inet", "faults", "in"}, match...), "drop")...)
}

// Filter prepares the member's machine for cuts.
func (m *Member) Filter(ctx context.Context) error {
	if m.filtered {
		return nil
	}
	if err := errors.Join(
		m.nft(ctx, "add", "table", "inet", "faults"),
		m.nft(ctx, "add", "chain", "inet", "faults", "in", "{ type filter hook input priority 0 ; }"),
		m.nft(ctx, "add", "chain", "inet", "faults", "out", "{ type filter hook output priority 0 ; }"),
	); err != nil {
		return err
	}
	m.filtered = true
	return nil
}

func (m *Member) nft(ctx context.Context, args ...string) error {
	if out, err := m.NS.Command(ctx, "nft", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("nft %s on %s: %w: %s", strings.Join(args, " "), m.Name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
