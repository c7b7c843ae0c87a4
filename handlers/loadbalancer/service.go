package loadbalancer

import (
	"strings"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// service is a protocol that a balancer serves, with the ports as masks; ICMP has
// the mask of all ports.
type service struct {
	protocol uint8
	ports    flow.PortMask
}

// services are what lb serves, each once, in the order of its rules, and the
// protocols that can't be balanced (row L-3 of docs/deviations.md).
func services(lb *model.LoadBalancer) (served []service, others []string) {
	seen := map[service]bool{}
	add := func(protocol uint8, masks ...flow.PortMask) {
		for _, m := range masks {
			if x := (service{protocol, m}); !seen[x] {
				seen[x] = true
				served = append(served, x)
			}
		}
	}
	for _, r := range lb.Rules {
		switch strings.ToUpper(r.Protocol) {
		case model.ProtocolTCP:
			add(flow.ProtoTCP, portMasks(r)...)
		case model.ProtocolUDP:
			add(flow.ProtoUDP, portMasks(r)...)
		case model.ProtocolICMP:
			add(flow.ProtoICMP, flow.PortMask{})
		default:
			others = append(others, r.Protocol)
		}
	}
	return served, others
}

// portMasks are the ports of a rule (row L-12 of docs/deviations.md). A rule
// without a range of ports has none.
func portMasks(r model.LoadBalancerRule) []flow.PortMask {
	if r.PortRangeMin == nil || r.PortRangeMax == nil {
		return nil
	}
	min, max := *r.PortRangeMin, *r.PortRangeMax
	if min < 0 || max > 65535 || min > max {
		return nil
	}
	return flow.PortRange(uint16(min), uint16(max))
}
