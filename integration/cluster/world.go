package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
)

var (
	internet = netip.MustParseAddr(lab.InternetIP)
	outside  = netip.AddrPortFrom(internet, 443)
	floating = netip.MustParseAddrPort(BalancerIP + ":80")
)

// World is a cluster with a workload and the services that traffic needs.
type World struct {
	*Cluster
	services []*probe.Service
}

// LabConfig is the lab of a World: six switches with a controller.
var LabConfig = lab.FlatConfig{Workers: 1, Gateways: 2}

// NewWorld builds the lab with the VMs and their services, and the management
// network. There are no servers yet.
func NewWorld(ctx context.Context, c Config) (w *World, err error) {
	l, err := lab.NewFlat(ctx, LabConfig)
	if err != nil {
		return nil, err
	}
	w = &World{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(), l.Close())
			w = nil
		}
	}()
	if w.Cluster, err = New(ctx, l, c); err != nil {
		return w, err
	}
	for _, v := range VMs {
		if _, err := l.AddVM(ctx, lab.Worker(1), lab.HostConfig{Name: v.Name, MAC: v.MAC, Address: v.IP + "/24", Gateway: "192.168.10.1"}); err != nil {
			return w, err
		}
		if err := w.serve(v.Name, netip.MustParseAddrPort(v.IP+":80"), false); err != nil {
			return w, err
		}
	}
	return w, errors.Join(w.serve(lab.External, outside, false), w.serve(lab.External, outside, true))
}

func (w *World) serve(host string, at netip.AddrPort, udp bool) error {
	start := probe.ServeTCP
	if udp {
		start = probe.ServeUDP
	}
	s, err := start(w.Host(host).NS, at)
	if err == nil {
		w.services = append(w.services, s)
	}
	return err
}

// close ends services and servers.
func (w *World) close() error {
	var errs []error
	if w.Cluster != nil {
		errs = append(errs, w.Cluster.Close())
	}
	for _, s := range w.services {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Close stops and removes everything.
func (w *World) Close() error { return errors.Join(w.close(), w.Flat.Close()) }

// Configure makes the workload by requests to m and waits until packets pass.
func (w *World) Configure(ctx context.Context, m *Member) error {
	for _, r := range w.Workload() {
		if err := m.Write(ctx, r.Method, r.Path, r.Body); err != nil {
			return err
		}
	}
	return w.WaitWorking(ctx)
}

// setUpTime is what nodes, rules and the first packets may take.
const setUpTime = 20 * time.Second

// WaitWorking waits until all nodes are COMPLETE, the balancer has both members,
// and packets pass.
func (w *World) WaitWorking(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	leader, err := w.WaitLeader(ctx, setUpTime)
	if err != nil {
		return err
	}
	if err := w.WaitNodes(ctx, leader); err != nil {
		return err
	}
	if err := w.WaitBalancer(ctx, VMs[0].IP, VMs[1].IP); err != nil {
		return err
	}
	if err := errors.Join(
		probe.Ping(ctx, w.Host(VMs[0].Name).NS, internet),
		probe.Ping(ctx, w.Host(lab.External).NS, floating.Addr()),
	); err != nil {
		return err
	}
	return w.WaitQuiet(ctx)
}

// WaitNodes waits until m says that all nodes are COMPLETE.
func (w *World) WaitNodes(ctx context.Context, m *Member) error {
	for _, node := range slices.Concat(w.Gateways, w.Workers) {
		if err := Await(ctx, setUpTime, "node "+node, func() error {
			state, err := m.NodeState(ctx, node)
			if err == nil && state != "COMPLETE" {
				err = fmt.Errorf("it is %s", state)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// quiet is how long no server writes until the switches count as finished.
const quiet = time.Second

// WaitQuiet waits until no server has written to a switch for a while.
func (w *World) WaitQuiet(ctx context.Context) error {
	mark := w.Mark()
	return Await(ctx, setUpTime, "the switches to be finished", func() error {
		last := mark.Time
		for _, f := range w.Writes(mark) {
			last = f.Time
		}
		if since := time.Since(last); since < quiet {
			return fmt.Errorf("the last write is %s old", since)
		}
		return nil
	})
}

// WaitBalancer waits until the balancer's group on the gateway has these members.
func (w *World) WaitBalancer(ctx context.Context, members ...string) error {
	want := slices.Sorted(slices.Values(members))
	return Await(ctx, setUpTime, "the balancer's group", func() error {
		groups, err := w.Node(lab.Gateway).Groups(ctx, lab.BrInt)
		if err != nil {
			return err
		}
		if len(groups) != 1 || !slices.Equal(groups[0].Targets(), want) {
			return fmt.Errorf("the groups are %v", groups)
		}
		return nil
	})
}

// WaitTargets waits until some balancer's group on the gateway has exactly these
// members or, if it is not to be there, none has.
func (w *World) WaitTargets(ctx context.Context, there bool, members ...string) error {
	want := slices.Sorted(slices.Values(members))
	return Await(ctx, setUpTime, "a balancer's group", func() error {
		groups, err := w.Node(lab.Gateway).Groups(ctx, lab.BrInt)
		if err == nil && slices.ContainsFunc(groups, func(g ovs.Group) bool { return slices.Equal(g.Targets(), want) }) != there {
			err = fmt.Errorf("the groups are %v", groups)
		}
		return err
	})
}
