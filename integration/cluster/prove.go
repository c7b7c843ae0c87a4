package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/netns"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

const (
	proofID  = "proof"
	proofVIP = "192.168.10.251"
	proofIP  = "172.16.0.160"
)

// workTime is what new work may take until it shows on a switch.
const workTime = 10 * time.Second

// ProveWork shows that new work is done: a balancer with a floating IP that one
// server takes shows on another and on the switches, packets to it arrive, and
// nothing of it stays when it is deleted by the other server. Each server that runs
// has its turn.
func (w *World) ProveWork(ctx context.Context) error {
	members := w.Serving()
	for i, m := range members {
		if err := w.prove(ctx, m, members[(i+1)%len(members)]); err != nil {
			return fmt.Errorf("new work by %s: %w", m.Name, err)
		}
	}
	return nil
}

func (w *World) prove(ctx context.Context, m, other *Member) error {
	ctx, cancel := context.WithTimeout(ctx, 3*workTime)
	defer cancel()
	balancer := BalancerBody(VMs[2].IP)
	balancer["name"], balancer["vip"] = proofID, proofVIP
	if err := m.Write(ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", balancer); err != nil {
		return err
	}
	if err := m.Write(ctx, http.MethodPost, server.NetworkingPath+"/floating-ip", FloatingIPBody(proofID, proofIP, proofVIP)); err != nil {
		return err
	}
	path := server.ObjectPath("floating-ip", proofID)
	if err := Await(ctx, workTime, "the floating IP on "+other.Name, func() error {
		var answer map[string]any
		return other.Read(ctx, path, &answer)
	}); err != nil {
		return err
	}
	if err := pingWithin(ctx, w.Host(lab.External).NS, netip.MustParseAddr(proofIP)); err != nil {
		return err
	}
	if err := errors.Join(
		other.Write(ctx, http.MethodDelete, path, nil),
		other.Write(ctx, http.MethodDelete, server.ObjectPath("loadbalancer", proofID), nil),
	); err != nil {
		return err
	}
	return Await(ctx, workTime, "the rules of the new balancer to go", func() error {
		rules, err := w.Node(lab.Gateway).Flows(ctx, lab.BrInt)
		if err != nil {
			return err
		}
		for _, f := range rules {
			if of(f, proofIP) || of(f, proofVIP) {
				return fmt.Errorf("left: %s", f)
			}
		}
		return nil
	})
}

// WaitWrites waits until each server that runs takes writes, and returns how long
// the slowest let one wait.
func (w *World) WaitWrites(ctx context.Context, limit time.Duration) (took time.Duration, err error) {
	began := time.Now()
	for _, m := range w.Serving() {
		if err := w.WaitWrite(ctx, m, limit); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// WaitWrite waits until the server takes writes.
func (w *World) WaitWrite(ctx context.Context, m *Member, limit time.Duration) error {
	return Await(ctx, limit, "writes by "+m.Name, func() error { return w.tryWrite(ctx, m) })
}

// tryWrite creates a network and deletes it. An earlier attempt whose answer got
// lost may have created it.
func (w *World) tryWrite(ctx context.Context, m *Member) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, answer, err := m.Do(ctx, http.MethodPost, server.NetworkingPath+"/network", NetworkBody("try", "10.96.0"))
	if err != nil {
		return err
	}
	if status != http.StatusCreated && !strings.Contains(string(answer), "already exists") {
		return fmt.Errorf("%d %s", status, answer)
	}
	return m.Write(ctx, http.MethodDelete, server.ObjectPath("network", "try"), nil)
}

func pingWithin(ctx context.Context, ns *netns.NS, to netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	return probe.Ping(ctx, ns, to)
}

// of tells whether an address stands in a rule's match.
func of(f ovs.Flow, address string) bool {
	for _, field := range []string{"nw_dst", "nw_src", "arp_tpa", "arp_spa"} {
		if v, ok := f.Field(field); ok && v == address {
			return true
		}
	}
	return false
}
