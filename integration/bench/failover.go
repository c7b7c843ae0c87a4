package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/netns"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

const (
	failOvers = 3
	// pulse is the time between two packets of the traffic.
	pulse = 5 * time.Millisecond
	// calmTime is how long no packet may be lost before a gateway is killed.
	calmTime = 1500 * time.Millisecond
)

// measureFailOver kills the gateway under traffic, lets it come back and moves
// the router back to it, and again.
func (w *world) measureFailOver(ctx context.Context) (f figure, err error) {
	// Linux keeps a young entry of its ARP table for 1 s against a later answer.
	// The gap is to be the gateways' alone.
	if err := w.Host(lab.External).Command(ctx, "sysctl", "-q", "net.ipv4.neigh.eth0.locktime=0").Run(); err != nil {
		return f, fmt.Errorf("configure the machine outside: %w", err)
	}
	vm, internet := w.Host(memberMachine).NS, netip.MustParseAddr(lab.InternetIP)
	var gaps, committed times
	var lost []int
	for range failOvers {
		if err := w.calm(ctx, vm, internet); err != nil {
			return f, err
		}
		traffic, err := probe.StartPing(vm, internet, pulse)
		if err != nil {
			return f, err
		}
		r, rules, err := w.failOver(ctx, traffic)
		if err != nil {
			return f, err
		}
		committed = append(committed, rules)
		gaps, lost = append(gaps, r.LongestGap), append(lost, len(r.Lost))
		if err := w.bringBack(ctx); err != nil {
			return f, err
		}
	}
	return figure{part: "g", ratio: fmt.Sprintf("gateway dead to first packet through the other: %.2f of the 1 s that it may take (worst of %d)", gaps.at(1).Seconds(), failOvers),
		details: []string{
			fmt.Sprintf("gap between two answers: %s, one packet each %s", gaps.list(), pulse),
			fmt.Sprintf("packets lost: %d", lost),
			"gateway killed to the other's first commit reply: " + committed.list(),
		}}, nil
}

// calm waits until a whole stream of packets was answered: what moved the router
// before is over.
func (w *world) calm(ctx context.Context, vm *netns.NS, internet netip.Addr) error {
	return eventually(ctx, "no packet is lost", func() (bool, error) {
		s, err := probe.StartPing(vm, internet, pulse)
		if err != nil {
			return false, err
		}
		err = pause(ctx, calmTime)
		return len(s.Stop().Lost) == 0, err
	})
}

// failOver kills the gateway of r1 and ends the traffic when it has flowed again.
// It also tells after what time the other gateway had rules of the router.
func (w *world) failOver(ctx context.Context, traffic *probe.Stream) (r probe.Result, rules time.Duration, err error) {
	defer func() {
		r = traffic.Stop()
		err = errors.Join(err, r.Err)
	}()
	if err := answered(ctx, traffic, 50); err != nil {
		return r, 0, err
	}
	second := lab.GatewayName(2)
	mark, dead := w.relay.Mark(), time.Now()
	if err := w.Node(lab.Gateway).KillSwitch(); err != nil {
		return r, 0, err
	}
	if err := eventually(ctx, "the router has moved", func() (bool, error) {
		router, err := w.server.Router(ctx, "r1")
		return router.Gateway == second, err
	}); err != nil {
		return r, 0, err
	}
	if err := answered(ctx, traffic, traffic.Answered()+100); err != nil {
		return r, 0, err
	}
	replies := w.relay.Since(mark, commitReplyOf(second+"/"+lab.BrInt))
	if len(replies) == 0 {
		return r, 0, errors.New("the other gateway got no rules")
	}
	return r, replies[0].Time.Sub(dead), nil
}

func answered(ctx context.Context, s *probe.Stream, n int) error {
	return eventually(ctx, fmt.Sprintf("%d packets are answered", n), func() (bool, error) { return s.Answered() >= n, nil })
}

// bringBack starts the dead gateway's switch and moves r1 back to it.
func (w *world) bringBack(ctx context.Context) error {
	if err := w.Node(lab.Gateway).StartSwitch(ctx); err != nil {
		return err
	}
	if err := eventually(ctx, "the gateway is COMPLETE again", func() (bool, error) {
		state, err := w.server.NodeState(ctx, lab.Gateway)
		return state == "COMPLETE", err
	}); err != nil {
		return err
	}
	if err := w.route(ctx, http.MethodPut, server.ObjectPath("router", "r1"), lab.Gateway); err != nil {
		return err
	}
	return eventually(ctx, "the router is back", func() (bool, error) {
		r, err := w.server.Router(ctx, "r1")
		return r.Gateway == lab.Gateway, err
	})
}
