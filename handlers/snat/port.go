package snat

import (
	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// portRules are the rules that lead answers to one VM.
func (s *setting) portRules(db state.Snapshot, p *model.Port) (set flow.Set, waiting []handlers.Waiting) {
	if !p.IP.IsValid() {
		return flow.Set{}, []handlers.Waiting{handlers.Waitf("address of port %s", p.MAC)}
	}
	if !p.IP.Is4() {
		return flow.Set{}, nil
	}
	n := db.Network(p.NetworkID)
	tag, ok := handlers.Tag(n)
	if !ok {
		return set, []handlers.Waiting{handlers.Waitf("VLAN id of network %s", p.NetworkID)}
	}
	set.Rules = []flow.Rule{s.toPort(p, tag)}
	if n == nil {
		return set, []handlers.Waiting{handlers.Waitf("network %s", p.NetworkID)}
	}
	if !n.Type.IsTunnel() {
		return set, nil
	}
	r, missing := s.toWorker(db, n, p)
	if missing != "" {
		return set, []handlers.Waiting{missing}
	}
	set.Rules = append(set.Rules, r)
	return set, nil
}

// toPort is Snat-P: an answer gets the VM's MAC and the tag of its network.
func (s *setting) toPort(p *model.Port, tag uint16) flow.Rule {
	return flow.Rule{
		Switch: s.gateway.IntegrationDPID(), Table: flow.TableGwDrop, Priority: flow.PriorityStatefulSNAT,
		Match:   flow.Match{EthType: flow.EthTypeIPv4, EthSrc: s.router.MAC, IPDst: flow.Host(p.IP)},
		Actions: append([]flow.Action{flow.SetMAC{Field: flow.FieldEthDst, MAC: p.MAC}}, handlers.PushTag(tag)...),
		Goto:    flow.TableForwarding,
	}
}

// toWorker is Snat-T: an answer for a VM of a tunnel network goes through the
// tunnel to the VM's worker.
func (s *setting) toWorker(db state.Snapshot, n *model.Network, p *model.Port) (flow.Rule, handlers.Waiting) {
	return handlers.ToWorker(db, s.gateway, n, p, flow.PriorityForwarding)
}
