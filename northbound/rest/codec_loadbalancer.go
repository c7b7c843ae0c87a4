package rest

import (
	"fmt"
	"strings"

	"kvnet/model"
)

// loadBalancerJSON is ONOS's form of a load balancer.
type loadBalancerJSON struct {
	Name        *string `json:"name" validate:"required,key" example:"web" minLength:"1" maxLength:"4096"`
	VIP         *string `json:"vip" validate:"required,host" example:"192.0.2.100" format:"ip"`
	NetworkID   *string `json:"networkId" validate:"required" example:"net-1"`
	Description *string `json:"description,omitempty" example:"the shop"`
	// The addresses of the VMs that serve.
	Members []string               `json:"members,omitempty" validate:"dive,host" example:"192.0.2.10,192.0.2.11" format:"ip"`
	Rules   []loadBalancerRuleJSON `json:"rules,omitempty" validate:"dive"`
} // @name KubevirtLoadBalancer

// loadBalancerRuleJSON is a protocol with its ports. ONOS keeps ports for TCP and
// UDP only.
type loadBalancerRuleJSON struct {
	// TCP, UDP or ICMP, in any case of letters. Rules of other protocols are stored
	// and have no effect.
	Protocol *string `json:"protocol" example:"TCP"`
	// TCP and UDP need both ports; other protocols have none.
	PortMax *int32 `json:"portRangeMax,omitempty" example:"80" minimum:"1" maximum:"65535"`
	PortMin *int32 `json:"portRangeMin,omitempty" example:"80" minimum:"1" maximum:"65535"`
} // @name KubevirtLoadBalancerRule

func (*loadBalancerJSON) entity() string { return "KubevirtLoadBalancer" }

func (l *loadBalancerJSON) check(f *faults) {
	if *l.Name == "" {
		f.add("name is empty: Kubevirt load balancer name cannot be null")
	}
	if n := len(sortedAddresses(l.Members)); n > model.MaxMembers {
		f.add("members: %d different addresses, a load balancer can have at most %d", n, model.MaxMembers)
	}
	for i := range l.Rules {
		l.Rules[i].check(f, l.entity(), fmt.Sprintf("rules[%d]", i))
	}
}

// hasPorts tells whether the rule's protocol has ports.
func (r *loadBalancerRuleJSON) hasPorts() bool {
	p := text(r.Protocol)
	return strings.EqualFold(p, model.ProtocolTCP) || strings.EqualFold(p, model.ProtocolUDP)
}

// warnings implements warner: rules with a protocol that can't be balanced are
// stored and do nothing.
func (l *loadBalancerJSON) warnings() (out []string) {
	said := map[string]bool{}
	for i, r := range l.Rules {
		p := text(r.Protocol)
		if r.hasPorts() || strings.EqualFold(p, model.ProtocolICMP) || said[p] {
			continue
		}
		if said[p] = true; len(said) > maxWarnings {
			return append(out, "more rules have no effect for the same reason")
		}
		out = append(out, fmt.Sprintf("rules[%d] is stored but has no effect: its protocol %q is none of TCP, UDP and ICMP", i, shown(p)))
	}
	return out
}

// maxWarnings is how many protocols, or bridges, an answer warns of.
const maxWarnings = 8

func (r *loadBalancerRuleJSON) check(f *faults, entity, path string) {
	if !r.hasPorts() {
		return
	}
	before := len(*f)
	for _, p := range []struct {
		name  string
		value *int32
	}{{"portRangeMin", r.PortMin}, {"portRangeMax", r.PortMax}} {
		name := joinPath(path, p.name)
		switch {
		case p.value == nil:
			f.add("%s is required in %s for the protocol %s", name, entity, *r.Protocol)
		case *p.value < 1 || *p.value > 65535:
			f.add("%s %d is no port from 1 to 65535", name, *p.value)
		}
	}
	if len(*f) == before && *r.PortMin > *r.PortMax {
		f.add("%s: portRangeMin %d is greater than portRangeMax %d", path, *r.PortMin, *r.PortMax)
	}
}

func (l *loadBalancerJSON) key() string { return *l.Name }

func (l *loadBalancerJSON) apply(model.Object) model.Object {
	out := &model.LoadBalancer{
		Name:        *l.Name,
		Description: l.Description,
		VIP:         address(l.VIP),
		NetworkID:   *l.NetworkID,
		Members:     sortedAddresses(l.Members),
	}
	seen := map[string]bool{}
	for _, r := range l.Rules {
		rule := model.LoadBalancerRule{Protocol: text(r.Protocol)}
		id := rule.Protocol
		if r.hasPorts() {
			rule.PortRangeMin, rule.PortRangeMax = r.PortMin, r.PortMax
			id = fmt.Sprint(rule.Protocol, *r.PortMin, "-", *r.PortMax)
		}
		if !seen[id] {
			seen[id] = true
			out.Rules = append(out.Rules, rule)
		}
	}
	return out
}

func encodeLoadBalancer(l *model.LoadBalancer) *loadBalancerJSON {
	out := &loadBalancerJSON{
		Name:        &l.Name,
		VIP:         addressText(l.VIP),
		NetworkID:   &l.NetworkID,
		Description: l.Description,
	}
	for _, m := range l.Members {
		out.Members = append(out.Members, m.String())
	}
	for _, r := range l.Rules {
		out.Rules = append(out.Rules, loadBalancerRuleJSON{&r.Protocol, r.PortRangeMax, r.PortRangeMin})
	}
	return out
}
