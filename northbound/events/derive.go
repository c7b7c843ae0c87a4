package events

import (
	"slices"

	"kvnet/model"
)

// Router is a router with what is decided about it, as clients see it.
type Router struct {
	*model.Router
	Gateway string
	PeerMAC model.MAC
}

// Node is a node with its state.
type Node struct {
	*model.Node
	State model.NodeState
}

// FloatingIP is a floating IP. Balanced: its fixed IP is the virtual address of a
// balancer in a network behind its router.
type FloatingIP struct {
	*model.FloatingIP
	Balanced bool
}

// names are the events of a change from old to now, in ONOS's order. An absent
// version is nil; update is asked if there are both.
func names[T any](old, now *T, created, removed Name, update func(add func(bool, Name))) []Name {
	switch {
	case old == nil && now == nil:
		return nil
	case old == nil:
		return []Name{created}
	case now == nil:
		return []Name{removed}
	}
	var out []Name
	update(func(happened bool, n Name) {
		if happened {
			out = append(out, n)
		}
	})
	return out
}

// lacks tells whether a has an element that b has not.
func lacks[T comparable](a, b []T) bool {
	return slices.ContainsFunc(a, func(x T) bool { return !slices.Contains(b, x) })
}

// OfNetwork names the change of a network. An absent version is nil, as in all
// functions here.
func OfNetwork(old, now *model.Network) []Name {
	return names(old, now, NetworkCreated, NetworkRemoved, func(add func(bool, Name)) {
		add(true, NetworkUpdated)
	})
}

// OfPort names the change of a port.
func OfPort(old, now *model.Port) []Name {
	return names(old, now, PortCreated, PortRemoved, func(add func(bool, Name)) {
		add(true, PortUpdated)
		add(lacks(old.SecurityGroups, now.SecurityGroups), PortSecurityGroupRemoved)
		add(lacks(now.SecurityGroups, old.SecurityGroups), PortSecurityGroupAdded)
		add(old.DeviceID == "" && now.DeviceID != "", PortDeviceAdded)
	})
}

// OfRouter names the change of a router.
func OfRouter(old, now *Router) []Name {
	return names(old, now, RouterCreated, RouterRemoved, func(add func(bool, Name)) {
		add(old.Peer != nil && old.PeerMAC.IsZero() && now.Peer != nil && !now.PeerMAC.IsZero(), PeerRouterMACRetrieved)
		add(old.External == nil && now.External != nil, RouterExternalNetworkAttached)
		add(old.External != nil && now.External == nil, RouterExternalNetworkDetached)
		add(lacks(now.Internal, old.Internal), RouterInternalNetworksAttached)
		add(lacks(old.Internal, now.Internal), RouterInternalNetworksDetached)
		add(old.Gateway == "" && now.Gateway != "", GatewayNodeAttached)
		add(old.Gateway != "" && now.Gateway == "", GatewayNodeDetached)
		add(old.Gateway != "" && now.Gateway != "" && old.Gateway != now.Gateway, GatewayNodeChanged)
		add(old.EnableSNAT && !now.EnableSNAT, SNATStatusDisabled)
		add(true, RouterUpdated)
	})
}

// OfFloatingIP names the change of a floating IP. Whether the addresses are
// balancers' is meant at the time of the new version, for both.
func OfFloatingIP(old, now *FloatingIP) []Name {
	return names(old, now, FloatingIPCreated, FloatingIPRemoved, func(add func(bool, Name)) {
		set := func(a, b *string) bool { return text(a) == "" && text(b) != "" }
		bound, freed := now.FixedIP.IsValid(), old.FixedIP.IsValid()
		add(true, FloatingIPUpdated)
		add(set(old.PodName, now.PodName) || set(old.VMName, now.VMName), FloatingIPAssociated)
		add(set(now.PodName, old.PodName) || set(now.VMName, old.VMName), FloatingIPDisassociated)
		add(bound && !freed && now.Balanced, FloatingIPLBAssociated)
		add(freed && !bound && old.Balanced, FloatingIPLBDisassociated)
	})
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// OfSecurityGroup names the change of a security group. Rules are told apart by
// their ids.
func OfSecurityGroup(old, now *model.SecurityGroup) []Name {
	return names(old, now, SecurityGroupCreated, SecurityGroupRemoved, func(add func(bool, Name)) {
		before, after := ruleIDs(old), ruleIDs(now)
		add(lacks(before, after), SecurityGroupRuleRemoved)
		add(lacks(after, before), SecurityGroupRuleCreated)
		add(true, SecurityGroupUpdated)
	})
}

func ruleIDs(g *model.SecurityGroup) []string {
	var out []string
	for _, r := range g.Rules {
		out = append(out, r.ID)
	}
	return out
}

// OfLoadBalancer names the change of a balancer.
func OfLoadBalancer(old, now *model.LoadBalancer) []Name {
	return names(old, now, LoadBalancerCreated, LoadBalancerRemoved, func(add func(bool, Name)) {
		add(lacks(now.Members, old.Members), LoadBalancerMemberAdded)
		add(lacks(old.Members, now.Members), LoadBalancerMemberRemoved)
		add(true, LoadBalancerUpdated)
	})
}

// OfNode names the change of a node. As in ONOS, each change of a node that is
// COMPLETE or INCOMPLETE says so again.
func OfNode(old, now *Node) []Name {
	return names(old, now, NodeCreated, NodeRemoved, func(add func(bool, Name)) {
		add(true, NodeUpdated)
		add(now.State == model.NodeComplete, NodeComplete)
		add(now.State == model.NodeIncomplete, NodeIncomplete)
	})
}

// OfAPIConfig names the change of the configuration of the Kubernetes API.
func OfAPIConfig(old, now *model.APIConfig) []Name {
	return names(old, now, APIConfigCreated, APIConfigRemoved, func(add func(bool, Name)) {
		add(true, APIConfigUpdated)
	})
}
