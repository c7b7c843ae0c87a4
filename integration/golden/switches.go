package golden

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/relay"
	"kvnet/model"
)

// switches are the real bridges that stand for the devices of a scenario.
type switches struct {
	lab   *lab.Lab
	relay *relay.Relay
	// machines are Open vSwitch instances. In each a port name can exist once,
	// so devices with equal names of ports are on different ones.
	machines []*machine
	bridges  map[model.DPID]bridge
	// apart are bridges that are cut off or whose node was deleted: they are
	// not compared.
	apart map[model.DPID]bool
}

type machine struct {
	*lab.Node
	ports map[string]bool
}

type bridge struct {
	*machine
	name string
}

// add makes the bridge of a device with its ports, and lets it connect.
func (s *switches) add(ctx context.Context, id model.DPID, ports map[string]uint32) error {
	return s.addThen(ctx, id, ports, nil)
}

// addThen adds a bridge and, if there is something to do with it before it may
// connect, does that.
func (s *switches) addThen(ctx context.Context, id model.DPID, ports map[string]uint32, first func(bridge) error) error {
	m, err := s.machineFor(ctx, ports)
	if err != nil {
		return err
	}
	b := bridge{m, fmt.Sprintf("br-%x", uint64(id))}
	if _, err := s.relay.Listen(id.String(), "unix", m.ControllerSocket(b.name)); err != nil {
		return err
	}
	if first != nil {
		s.relay.Hold(id.String())
	}
	spec := ovs.Bridge{Name: b.name, DPID: id, Controlled: true}
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		m.ports[name] = true
		// What lies behind the ports doesn't matter: no packet is sent.
		spec.Ports = append(spec.Ports, ovs.Port{Name: name, Kind: ovs.Patch, Peer: "nowhere", Number: ports[name]})
	}
	if err := m.AddBridge(ctx, spec); err != nil {
		return err
	}
	s.bridges[id] = b
	if first == nil {
		return nil
	}
	if err := first(b); err != nil {
		return err
	}
	return s.cut(ctx, id, false)
}

// cut keeps a bridge from the server, and lets it connect again.
func (s *switches) cut(ctx context.Context, id model.DPID, off bool) error {
	if s.apart[id] = off; off {
		s.relay.Hold(id.String())
		return nil
	}
	s.relay.Admit(id.String())
	b := s.bridges[id]
	return b.Reconnect(ctx, b.name)
}

func (s *switches) machineFor(ctx context.Context, ports map[string]uint32) (*machine, error) {
	for _, m := range s.machines {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(ports)), func(p string) bool { return m.ports[p] }) {
			return m, nil
		}
	}
	n, err := s.lab.AddNode(ctx, fmt.Sprintf("m%d", len(s.machines)+1))
	if err != nil {
		return nil, err
	}
	m := &machine{n, map[string]bool{}}
	s.machines = append(s.machines, m)
	return m, nil
}

// state reads the rules of all bridges.
func (s *switches) state(ctx context.Context) (State, error) {
	out := State{}
	for id, b := range s.bridges {
		if s.apart[id] {
			continue
		}
		flows, err := b.Flows(ctx, b.name)
		if err != nil {
			return nil, fmt.Errorf("read rules of %s: %w", id, err)
		}
		groups, err := b.Groups(ctx, b.name)
		if err != nil {
			return nil, fmt.Errorf("read groups of %s: %w", id, err)
		}
		for _, g := range groups {
			flows = append(flows, groupRule(g))
		}
		out[id] = flows
	}
	return out, nil
}
