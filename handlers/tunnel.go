package handlers

import (
	"strings"

	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// ToWorker is the rule on a gateway's br-tun that sends packets for a VM of a
// tunnel network through the tunnel to the VM's worker. Handlers have priorities of
// their own for it, so that their rules don't replace each other.
// If something is missing, the Waiting says what.
func ToWorker(db state.Snapshot, gateway *model.Node, n *model.Network, p *model.Port, priority uint16) (flow.Rule, Waiting) {
	segment, hasSegment := n.Segment()
	worker := db.NodeByIntegration(p.DeviceID)
	switch {
	case gateway.TunnelDPID() == 0:
		return flow.Rule{}, Waitf("tunnel bridge of node %s", gateway.Hostname)
	case !hasSegment:
		return flow.Rule{}, Waitf("segment id of network %s", n.ID)
	case p.DeviceID == "":
		return flow.Rule{}, Waitf("place of port %s", p.MAC)
	case worker == nil:
		return flow.Rule{}, Waitf("worker with integration bridge %s", p.DeviceID)
	case !worker.DataIP.Is4():
		return flow.Rule{}, Waitf("IPv4 data address of node %s", worker.Hostname)
	}
	return flow.Rule{
		Switch: gateway.TunnelDPID(), Table: flow.TableTunnelDefault, Priority: priority,
		Match: flow.Match{EthType: flow.EthTypeIPv4, EthDst: p.MAC, IPDst: flow.Host(p.IP)},
		Actions: []flow.Action{
			flow.SetUint{Field: flow.FieldTunID, Value: uint64(segment)},
			flow.SetIP{Field: flow.FieldTunDst, IP: worker.DataIP},
			flow.Output{Port: flow.NamedPort(tunnelPort(n.Type))},
		},
	}, ""
}

// tunnelPort is the name of br-tun's port for networks of type t.
func tunnelPort(t model.NetworkType) string { return strings.ToLower(string(t)) }
