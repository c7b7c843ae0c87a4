package events_test

import (
	"net/netip"
	"slices"
	"testing"

	"kvnet/model"
	"kvnet/northbound/events"
)

func ptr[T any](v T) *T { return &v }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func want(t *testing.T, what string, got []events.Name, want ...events.Name) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestAnObjectThatComesOrGoesHasOneEvent(t *testing.T) {
	want(t, "no network", events.OfNetwork(nil, nil))
	want(t, "new network", events.OfNetwork(nil, &model.Network{}), events.NetworkCreated)
	want(t, "old network", events.OfNetwork(&model.Network{}, nil), events.NetworkRemoved)
	full := &events.Router{Router: &model.Router{External: &model.External{}, Internal: []string{"n"}}, Gateway: "gw"}
	want(t, "new router", events.OfRouter(nil, full), events.RouterCreated)
	want(t, "old router", events.OfRouter(full, nil), events.RouterRemoved)
	group := &model.SecurityGroup{Rules: []model.SecurityGroupRule{{ID: "a"}}}
	want(t, "new group", events.OfSecurityGroup(nil, group), events.SecurityGroupCreated)
	want(t, "old group", events.OfSecurityGroup(group, nil), events.SecurityGroupRemoved)
}

func TestRouterEventsComeInOrderWithTheUpdateLast(t *testing.T) {
	peer := &model.PeerRouter{IP: addr("192.0.2.1")}
	bare := &events.Router{Router: &model.Router{Internal: []string{"a"}, EnableSNAT: true, Peer: peer}}
	full := &events.Router{
		Router:  &model.Router{Internal: []string{"b"}, External: &model.External{NetworkID: "x"}, Peer: peer},
		Gateway: "gw1", PeerMAC: model.MAC{2},
	}
	want(t, "all that can come", events.OfRouter(bare, full),
		events.PeerRouterMACRetrieved, events.RouterExternalNetworkAttached, events.RouterInternalNetworksAttached,
		events.RouterInternalNetworksDetached, events.GatewayNodeAttached, events.SNATStatusDisabled, events.RouterUpdated)
	want(t, "all that can go", events.OfRouter(full, bare),
		events.RouterExternalNetworkDetached, events.RouterInternalNetworksAttached,
		events.RouterInternalNetworksDetached, events.GatewayNodeDetached, events.RouterUpdated)
	other := *full
	other.Gateway = "gw2"
	other.Router = ptr(*full.Router)
	other.External = &model.External{NetworkID: "y"}
	want(t, "another gateway and external network", events.OfRouter(full, &other), events.GatewayNodeChanged, events.RouterUpdated)
	want(t, "nothing", events.OfRouter(full, full), events.RouterUpdated)
}

func TestPortEvents(t *testing.T) {
	old := &model.Port{SecurityGroups: []string{"a", "b"}}
	now := &model.Port{SecurityGroups: []string{"b", "c"}, DeviceID: "of:1"}
	want(t, "groups and device", events.OfPort(old, now),
		events.PortUpdated, events.PortSecurityGroupRemoved, events.PortSecurityGroupAdded, events.PortDeviceAdded)
	want(t, "another device", events.OfPort(now, &model.Port{SecurityGroups: now.SecurityGroups, DeviceID: "of:2"}), events.PortUpdated)
}

func TestFloatingIPEvents(t *testing.T) {
	free := &events.FloatingIP{FloatingIP: &model.FloatingIP{PodName: ptr("")}}
	vm := &events.FloatingIP{FloatingIP: &model.FloatingIP{VMName: ptr("vm1"), FixedIP: addr("10.0.0.1")}}
	vip := &events.FloatingIP{FloatingIP: &model.FloatingIP{FixedIP: addr("10.0.0.9")}, Balanced: true}
	want(t, "VM bound", events.OfFloatingIP(free, vm), events.FloatingIPUpdated, events.FloatingIPAssociated)
	want(t, "VM freed", events.OfFloatingIP(vm, free), events.FloatingIPUpdated, events.FloatingIPDisassociated)
	want(t, "balancer bound", events.OfFloatingIP(free, vip), events.FloatingIPUpdated, events.FloatingIPLBAssociated)
	want(t, "balancer freed", events.OfFloatingIP(vip, free), events.FloatingIPUpdated, events.FloatingIPLBDisassociated)
	want(t, "from the VM to the balancer", events.OfFloatingIP(vm, vip), events.FloatingIPUpdated, events.FloatingIPDisassociated)
}

func TestSecurityGroupEventsTellRulesByTheirIDs(t *testing.T) {
	group := func(ids ...string) *model.SecurityGroup {
		g := &model.SecurityGroup{}
		for _, id := range ids {
			g.Rules = append(g.Rules, model.SecurityGroupRule{ID: id})
		}
		return g
	}
	want(t, "rules", events.OfSecurityGroup(group("a", "b"), group("b", "c")),
		events.SecurityGroupRuleRemoved, events.SecurityGroupRuleCreated, events.SecurityGroupUpdated)
	want(t, "no rule", events.OfSecurityGroup(group("a"), group("a")), events.SecurityGroupUpdated)
}

func TestLoadBalancerEvents(t *testing.T) {
	a, b := addr("10.0.0.1"), addr("10.0.0.2")
	want(t, "members", events.OfLoadBalancer(&model.LoadBalancer{Members: []netip.Addr{a}}, &model.LoadBalancer{Members: []netip.Addr{b}}),
		events.LoadBalancerMemberAdded, events.LoadBalancerMemberRemoved, events.LoadBalancerUpdated)
	want(t, "no member", events.OfLoadBalancer(&model.LoadBalancer{}, &model.LoadBalancer{}), events.LoadBalancerUpdated)
}

func TestNodeEventsTellTheNewState(t *testing.T) {
	in := func(s model.NodeState) *events.Node { return &events.Node{Node: &model.Node{}, State: s} }
	want(t, "COMPLETE", events.OfNode(in(model.NodeInit), in(model.NodeComplete)), events.NodeUpdated, events.NodeComplete)
	want(t, "still COMPLETE", events.OfNode(in(model.NodeComplete), in(model.NodeComplete)), events.NodeUpdated, events.NodeComplete)
	want(t, "INCOMPLETE", events.OfNode(in(model.NodeComplete), in(model.NodeIncomplete)), events.NodeUpdated, events.NodeIncomplete)
	want(t, "INIT", events.OfNode(in(model.NodeIncomplete), in(model.NodeInit)), events.NodeUpdated)
}
