package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"kvnet/integration/netns"
	"kvnet/integration/ovs"
)

// Lab holds namespaces and switches under names of its own, so that any number of
// labs can exist at a time.
type Lab struct {
	// Dir holds the switches' sockets and logs, and whatever else a test keeps.
	Dir string

	id      string
	nodes   []*Node
	hosts   []*Host
	wires   int
	closers []func() error // in the order of making
}

// Node is a machine with an Open vSwitch.
type Node struct {
	*ovs.Instance
	Name string
}

// Host is a VM or another machine with one interface, eth0.
type Host struct {
	*netns.NS
	Name string
	// Tap is the name of the interface at the switch.
	Tap string
}

var sequence atomic.Int64

// New makes an empty lab.
func New() (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a lab of namespaces and switches needs root: run this as root")
	}
	self, err := processID(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := reap(); err != nil {
		return nil, fmt.Errorf("clear away labs of dead processes: %w", err)
	}
	id := fmt.Sprintf("%s%s-%d", prefix, self, sequence.Add(1))
	dir, err := os.MkdirTemp("", id+"-")
	if err != nil {
		return nil, fmt.Errorf("make folder of the lab: %w", err)
	}
	// ovs-vswitchd and its tools may run as another user one day.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open folder of the lab: %w", err)
	}
	l := &Lab{Dir: dir, id: id}
	l.closers = append(l.closers, func() error { return os.RemoveAll(dir) })
	return l, nil
}

// Close stops and removes everything in the reverse order of making.
func (l *Lab) Close() error {
	var errs []error
	for i := len(l.closers) - 1; i >= 0; i-- {
		errs = append(errs, l.closers[i]())
	}
	l.closers = nil
	return errors.Join(errs...)
}

// OnClose has f run by Close before what was made earlier is removed.
func (l *Lab) OnClose(f func() error) { l.closers = append(l.closers, f) }

// AddNode makes a node without bridges.
func (l *Lab) AddNode(ctx context.Context, name string) (*Node, error) {
	ns, err := l.AddNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	instance, err := ovs.Start(ctx, ns, filepath.Join(l.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("start Open vSwitch of %s: %w", name, err)
	}
	l.OnClose(instance.Stop)
	n := &Node{Instance: instance, Name: name}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// Node is the node of that name, which must exist.
func (l *Lab) Node(name string) *Node {
	for _, n := range l.nodes {
		if n.Name == name {
			return n
		}
	}
	panic("the lab has no node " + name)
}

// Host is the host of that name, which must exist.
func (l *Lab) Host(name string) *Host {
	for _, h := range l.hosts {
		if h.Name == name {
			return h
		}
	}
	panic("the lab has no host " + name)
}

// Wire joins two nodes by a veth pair whose ends are up, and returns the names of
// the ends.
func (l *Lab) Wire(ctx context.Context, a, b *Node) (endA, endB string, err error) {
	l.wires++
	endA, endB = fmt.Sprintf("w%da", l.wires), fmt.Sprintf("w%db", l.wires)
	if err := Veth(ctx, a.NS, endA, b.NS, endB); err != nil {
		return "", "", fmt.Errorf("wire %s to %s: %w", a.Name, b.Name, err)
	}
	return endA, endB, nil
}

// HostConfig describes a host.
type HostConfig struct {
	Name    string
	MAC     string
	Address string   // with prefix length
	Extra   []string // further addresses, on the loopback interface
	Gateway string   // of the default route; empty: none
	VLAN    uint16   // that the switch puts it into; 0: none
}

// AddHost makes a host and plugs it into a bridge of a node.
func (l *Lab) AddHost(ctx context.Context, n *Node, bridge string, c HostConfig) (*Host, error) {
	ns, err := l.AddNamespace(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	h := &Host{NS: ns, Name: c.Name, Tap: "tap-" + c.Name}
	if err := Veth(ctx, n.NS, h.Tap, ns, "eth0"); err != nil {
		return nil, fmt.Errorf("plug %s into %s: %w", c.Name, n.Name, err)
	}
	if err := ns.DisableOffloads("eth0"); err != nil {
		return nil, err
	}
	commands := [][]string{
		{"link", "set", "eth0", "address", c.MAC},
		{"addr", "add", c.Address, "dev", "eth0"},
	}
	for _, a := range c.Extra {
		commands = append(commands, []string{"addr", "add", a, "dev", "lo"})
	}
	if c.Gateway != "" {
		commands = append(commands, []string{"route", "add", "default", "via", c.Gateway})
	}
	for _, args := range commands {
		if err := ns.IP(ctx, args...); err != nil {
			return nil, fmt.Errorf("configure %s: %w", c.Name, err)
		}
	}
	if err := n.AddPort(ctx, bridge, ovs.Port{Name: h.Tap, Tag: c.VLAN}); err != nil {
		return nil, fmt.Errorf("plug %s into %s: %w", c.Name, bridge, err)
	}
	l.hosts = append(l.hosts, h)
	return h, nil
}

// AddNamespace makes a namespace without anything in it.
func (l *Lab) AddNamespace(ctx context.Context, name string) (*netns.NS, error) {
	ns, err := netns.Create(ctx, l.id+"-"+name)
	if err != nil {
		return nil, err
	}
	l.OnClose(ns.Delete)
	return ns, nil
}

// Veth makes a pair of interfaces and brings both up. IPv6 stays off: its
// neighbour discovery would be packets that no test has sent.
func Veth(ctx context.Context, a *netns.NS, nameA string, b *netns.NS, nameB string) error {
	if err := netns.IP(ctx, "link", "add", nameA, "netns", a.Name, "type", "veth", "peer", "name", nameB, "netns", b.Name); err != nil {
		return err
	}
	for _, end := range []struct {
		ns   *netns.NS
		name string
	}{{a, nameA}, {b, nameB}} {
		if err := end.ns.IP(ctx, "link", "set", end.name, "addrgenmode", "none"); err != nil {
			return err
		}
		if err := end.ns.IP(ctx, "link", "set", end.name, "up"); err != nil {
			return err
		}
	}
	return nil
}
