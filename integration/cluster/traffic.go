package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/probe"
)

// Pulse is the time between two packets of each stream.
const Pulse = 20 * time.Millisecond

// held is how many TCP connections stay open, in each direction.
const held = 4

// Traffic is what goes on while a fault happens: pings and datagrams of a VM that
// leave through the router, pings and TCP connections from outside to the
// balancer, TCP connections of the VM to the outside.
type Traffic struct {
	streams map[string]*probe.Stream
	open    []*probe.Connection
}

// StartTraffic returns when all of it flows.
func (w *World) StartTraffic(ctx context.Context) (t *Traffic, err error) {
	t = &Traffic{streams: map[string]*probe.Stream{}}
	defer func() {
		if err != nil {
			t.Stop()
		}
	}()
	vm, ext := w.Host(VMs[0].Name).NS, w.Host(lab.External).NS
	for name, start := range map[string]func() (*probe.Stream, error){
		"ping out": func() (*probe.Stream, error) { return probe.StartPing(vm, internet, Pulse) },
		"UDP out":  func() (*probe.Stream, error) { return probe.StartUDP(vm, outside, Pulse) },
		"ping in":  func() (*probe.Stream, error) { return probe.StartPing(ext, floating.Addr(), Pulse) },
	} {
		if t.streams[name], err = start(); err != nil {
			return t, err
		}
	}
	tcp, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for range held {
		out, err := probe.OpenTCP(tcp, vm, outside)
		if err != nil {
			return t, err
		}
		t.open = append(t.open, out)
		in, err := probe.OpenTCP(tcp, ext, floating)
		if err != nil {
			return t, err
		}
		t.open = append(t.open, in)
	}
	return t, Await(ctx, 10*time.Second, "traffic", func() error {
		for name, s := range t.streams {
			if s.Answered() < 10 {
				return fmt.Errorf("%s: %d answers", name, s.Answered())
			}
		}
		return nil
	})
}

// Loss is what became of the traffic.
type Loss struct {
	Sent, Lost int
	LongestGap time.Duration
	// Connections is how many TCP connections there were, Broken how many of them
	// answer no more.
	Connections, Broken int
	Details             []string
}

// Stop ends the traffic.
func (t *Traffic) Stop() Loss {
	l := Loss{Connections: len(t.open)}
	for _, c := range t.open {
		if err := c.Echo("still there?", 2*time.Second); err != nil {
			l.Broken++
			l.Details = append(l.Details, "TCP: "+err.Error())
		}
		_ = c.Close()
	}
	for name, s := range t.streams {
		if s == nil {
			continue
		}
		r := s.Stop()
		l.Sent, l.Lost, l.LongestGap = l.Sent+r.Sent, l.Lost+len(r.Lost), max(l.LongestGap, r.LongestGap)
		if len(r.Lost) > 0 || r.Err != nil {
			l.Details = append(l.Details, name+": "+r.String())
		}
	}
	return l
}

// None returns an error if anything was lost.
func (l Loss) None() error {
	if l.Lost == 0 && l.Broken == 0 && len(l.Details) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d packets were lost and %d of %d connections broke: %w", l.Lost, l.Sent, l.Broken, l.Connections, joined(l.Details))
}

func joined(texts []string) error {
	var errs []error
	for _, s := range texts {
		errs = append(errs, errors.New(s))
	}
	return errors.Join(errs...)
}
