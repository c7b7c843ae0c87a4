package loadbalancer

import (
	"fmt"
	"slices"
	"strings"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Two balancers may serve overlapping ports at one VIP or at one member. Their rules
// would meet, so each port is left to the balancer whose name comes first (row L-25 of
// docs/deviations.md). Only a service that both have as it is stays with both: the
// claims of one place show as conflict.

// atVIP are the services of s at its VIP, and what others have taken of them.
func (s *setting) atVIP(db state.Snapshot) ([]service, []handlers.Waiting) {
	var before []*model.LoadBalancer
	for o := range db.LoadBalancersByVIP(s.lb.VIP) {
		if o.Name < s.lb.Name && routerOf(db, o.NetworkID) == s.router {
			before = append(before, o)
		}
	}
	return s.beside(before)
}

// atMember is the same at a member. Where the VIPs are equal, so are the rules.
func (s *setting) atMember(db state.Snapshot, p *model.Port) ([]service, []handlers.Waiting) {
	var before []*model.LoadBalancer
	for o := range db.LoadBalancersByNetwork(s.lb.NetworkID) {
		if o.Name < s.lb.Name && o.VIP.Is4() && o.VIP != s.lb.VIP && slices.Contains(o.Members, p.IP) {
			before = append(before, o)
		}
	}
	return s.beside(before)
}

func (s *setting) beside(before []*model.LoadBalancer) (left []service, lost []handlers.Waiting) {
	left, _ = services(s.lb)
	slices.SortFunc(before, func(a, b *model.LoadBalancer) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range before {
		taken, _ := services(o)
		var rest []service
		for _, x := range left {
			parts := x.without(taken)
			if !slices.Equal(parts, []service{x}) {
				lost = append(lost, handlers.Waitf("balancer %s to leave what it serves of %s", o.Name, x))
			}
			rest = append(rest, parts...)
		}
		left = rest
	}
	return left, lost
}

// without are the blocks of x that don't overlap any of taken, or are one of them.
func (x service) without(taken []service) []service {
	var equal, inside bool
	for _, t := range taken {
		if t.protocol != x.protocol || (t.ports.Value^x.ports.Value)&t.ports.Mask&x.ports.Mask != 0 {
			continue
		}
		// Blocks of ports that overlap contain each other.
		switch {
		case t.ports == x.ports:
			equal = true
		case t.ports.Mask < x.ports.Mask:
			return nil
		default:
			inside = true
		}
	}
	if equal || !inside {
		return []service{x}
	}
	low, high := x, x
	half := ^x.ports.Mask/2 + 1
	low.ports.Mask |= half
	high.ports.Mask |= half
	high.ports.Value |= half
	return append(low.without(taken), high.without(taken)...)
}

// String names x, for example "TCP port 80" or "UDP ports 5000 to 5003".
func (x service) String() string {
	protocol := map[uint8]string{flow.ProtoTCP: model.ProtocolTCP, flow.ProtoUDP: model.ProtocolUDP, flow.ProtoICMP: model.ProtocolICMP}[x.protocol]
	switch x.ports.Mask {
	case 0:
		return protocol
	case 0xffff:
		return fmt.Sprintf("%s port %d", protocol, x.ports.Value)
	}
	return fmt.Sprintf("%s ports %d to %d", protocol, x.ports.Value, x.ports.Value|^x.ports.Mask)
}
