package network

import (
	"slices"
	"strings"

	"kvnet/handlers"
	"kvnet/handlers/arp"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// announcement tells the machines and switches of network n that the router's MAC
// is at gateway gw (row S-18 of docs/deviations.md). The MAC is the same on every
// gateway, so without it they would go on sending to the gateway before.
func announcement(db state.Snapshot, r *model.Router, n *model.Network, gw *model.Node) *flow.Announcement {
	tag, _ := handlers.Tag(n)
	return &flow.Announcement{
		Address: n.GatewayIP, Scope: string(owner(r.Name, n.ID)), Ports: portsTo(db, gw, n),
		Frame: string(arp.Tagged(arp.GratuitousFrame(r.MAC, n.GatewayIP), tag)), Roams: true,
	}
}

// portsTo are the ports of gateway gw that lead to network n: that of the physical
// interface for the network, if one names it by id or name; else all that may lead
// there, which are those of all physical interfaces but the port to the outside. A
// node that names no such interface, because others make its bridges, has the
// patch ports that its switch tells of.
func portsTo(db state.Snapshot, gw *model.Node, n *model.Network) (ports []flow.Port) {
	if port := portOf(gw, n); !port.IsZero() {
		return []flow.Port{port}
	}
	add := func(name string) {
		port := flow.NamedPort(name)
		if name != gw.ExternalPatchPort() && name != flow.PortIntToTun && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	for _, p := range gw.PhysIntfs {
		add(model.PatchPort(p.Network))
	}
	if len(ports) != 0 {
		return ports
	}
	for p := range db.SwitchPorts(gw.IntegrationDPID()) {
		if strings.HasPrefix(p.Name, model.PatchPortPrefix) {
			add(p.Name)
		}
	}
	return ports
}

// portOf is the port of gateway gw for network n, if a physical interface names
// the network by its id or name.
func portOf(gw *model.Node, n *model.Network) flow.Port {
	for _, p := range gw.PhysIntfs {
		if p.Network == n.ID || p.Network == n.Name {
			return flow.NamedPort(model.PatchPort(p.Network))
		}
	}
	return flow.Port{}
}

// mayLead tells whether a change of a switch's port may change what portsTo finds.
func mayLead(c model.Change) bool {
	for _, p := range model.Versions[*model.SwitchPort](c) {
		if strings.HasPrefix(p.Name, model.PatchPortPrefix) {
			return true
		}
	}
	return false
}
