package rest

import (
	"fmt"
	"strings"

	"kvnet/model"
)

// loadBalancerJSON is ONOS's form of a load balancer.
type loadBalancerJSON struct {
	Name        *string                `json:"name" validate:"required,key"`
	VIP         *string                `json:"vip" validate:"required,host"`
	NetworkID   *string                `json:"networkId" validate:"required"`
	Description *string                `json:"description,omitempty"`
	Members     []string               `json:"members,omitempty" validate:"dive,host"`
	Rules       []loadBalancerRuleJSON `json:"rules,omitempty" validate:"dive"`
}

// loadBalancerRuleJSON is a protocol with its ports. ONOS keeps ports for TCP and
// UDP only.
type loadBalancerRuleJSON struct {
	Protocol *string `json:"protocol"`
	PortMax  *int32  `json:"portRangeMax,omitempty"`
	PortMin  *int32  `json:"portRangeMin,omitempty"`
}

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

// maxWarnings is how many protocols an answer warns of.
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
