package loadbalancer

import (
	"net/netip"
	"slices"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

const name = "lb"

// Handler computes the rules and groups of balancers. A balancer has one owner
// for its group and the ways to it, one for each member and one for each floating
// IP that is bound to its VIP.
type Handler struct{}

// New makes the handler.
func New() Handler { return Handler{} }

// Name implements handlers.Handler.
func (Handler) Name() string { return name }

// The parts of an owner's name between the balancer's and the member's or
// floating IP's.
const (
	partMember   = "member"
	partFloating = "fip"
)

func balancerOwner(lb string) flow.Owner { return handlers.OwnerOf(name, lb) }

func memberOwner(lb string, ip netip.Addr) flow.Owner {
	return handlers.OwnerOf(name, lb, partMember, ip.String())
}

func floatingOwner(lb, fip string) flow.Owner { return handlers.OwnerOf(name, lb, partFloating, fip) }

// Owners implements handlers.Handler.
func (Handler) Owners(db state.Snapshot) (owners []flow.Owner) {
	for lb := range db.LoadBalancers() {
		owners = append(owners, balancerOwner(lb.Name))
		for _, ip := range lb.Members {
			owners = append(owners, memberOwner(lb.Name, ip))
		}
		for fip := range db.FloatingIPsByFixed(lb.VIP.String()) {
			owners = append(owners, floatingOwner(lb.Name, fip.ID))
		}
	}
	return owners
}

// Rules implements handlers.Handler.
func (Handler) Rules(db state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	parts, ok := handlers.OwnerParts(name, o)
	if !ok {
		return flow.Set{}, nil
	}
	lb := db.LoadBalancer(parts[0])
	if lb == nil {
		return flow.Set{}, nil
	}
	switch {
	case len(parts) == 1:
		s, waiting := settingOf(db, lb)
		if s == nil {
			return flow.Set{}, waiting
		}
		return s.balancer(db)
	case len(parts) == 3 && parts[1] == partMember:
		ip, err := netip.ParseAddr(parts[2])
		if err != nil || !slices.Contains(lb.Members, ip) {
			return flow.Set{}, nil
		}
		s, _ := settingOf(db, lb)
		if s == nil {
			return flow.Set{}, waitForBalancer(lb)
		}
		return s.member(db, ip)
	case len(parts) == 3 && parts[1] == partFloating:
		fip := db.FloatingIP(parts[2])
		if fip == nil || !fip.FixedIP.IsValid() || fip.FixedIP != lb.VIP {
			return flow.Set{}, nil
		}
		return floating(db, lb, fip)
	}
	return flow.Set{}, nil
}

// waitForBalancer is what members and floating IPs wait for if the balancer lacks
// something; what that is, is told once, by the balancer's own owner.
func waitForBalancer(lb *model.LoadBalancer) []handlers.Waiting {
	return []handlers.Waiting{handlers.Waitf("balancer %s", lb.Name)}
}
