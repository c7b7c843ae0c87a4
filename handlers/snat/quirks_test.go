package snat_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/model"
)

// Each test shows what kvnet does about a row of docs/deviations.md.

func TestS1AllRulesAreOnTheDecidedGateway(t *testing.T) {
	l := newLab(t)
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.Want("moved as one", "snat/r1", r1Rules(2)+portRules(2))
}

func TestS2ReplacedExternalAddressLeavesNothing(t *testing.T) {
	l := newLab(t)
	l.Edit("r1", func(r *model.Router) { r.External = &model.External{IPText: "172.16.0.101", NetworkID: "ext-net"} })
	l.Want("address", "snat/r1", snatA(1, "172.16.0.101", "ac100065")+snatU(1, "172.16.0.101", 1)+snatD(1, "172.16.0.101", 1)+
		drops(1, "192.168.10.0/24", "10.10.0.0/24")+portRules(1))

	l.Put(handlertest.Network(model.NetworkVLAN, "ext-vlan", "100", "172.16.0.0/24"))
	l.Edit("r1", func(r *model.Router) { r.External = &model.External{IPText: "172.16.0.101", NetworkID: "ext-vlan"} })
	l.HasNot("network", "ip,nw_dst=172.16.0.101")
	l.Has("network", "ip,dl_vlan=100,nw_dst=172.16.0.101")
}

func TestS3TagsArePoppedAndPushed(t *testing.T) {
	l := newLab(t)
	vlan := func(id, segment string) *model.Network {
		return handlertest.Network(model.NetworkVLAN, id, segment, "192.168.11.0/24")
	}
	const (
		out  = "actions=ct(commit,zone=1,nat(src=172.16.0.100:1025-65535)),set_field:52:54:00:aa:bb:01->eth_dst,set_field:fe:00:00:00:00:02->eth_src,"
		push = "push_vlan:0x8100,set_field:4196->vlan_vid,"
	)
	snatU := func(match, actions string) string { return "table=31,priority=40500,ip," + match + actions }

	l.Put(handlertest.Network(model.NetworkVLAN, "ext-net", "100", "172.16.0.0/24"))
	l.Has("the outer tag is pushed", snatU("dl_dst=fa:00:00:00:00:0a,", out+push+`output:"int-to-external"`))
	l.Has("the announcement is tagged", "ffffffffffff"+"fe0000000002"+"81000064"+"0806")
	l.Has("an answer keeps the question's tag", `table=31,priority=41000,arp,in_port="int-to-external",arp_tpa=172.16.0.100,arp_op=1`)
	l.Put(handlertest.Network(model.NetworkVLAN, "ext-net", "x", "172.16.0.0/24"))
	l.HasNot("nothing leaves without the tag that it needs", "nat(src=")
	l.Put(handlertest.Network(model.NetworkFLAT, "ext-net", "", "172.16.0.0/24"))

	l.Put(vlan("vlan1", "101"), vlan("vlan2", "102"), handlertest.Port(0x41, "vlan1", "192.168.11.41", "c1"))
	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"flat1", "vlan1", "vlan2"} })
	untagged := snatU("vlan_tci=0x0000/0x1fff,dl_dst=fa:00:00:00:00:0a,", out+`output:"int-to-external"`)
	tagged := snatU("dl_vlan=101,dl_dst=fa:00:00:00:00:0a,", strings.Replace(out, "actions=", "actions=pop_vlan,", 1)+`output:"int-to-external"`)
	l.Has("the inner tag is popped", tagged)
	l.Has("of each VLAN network", "dl_vlan=102,dl_dst=fa:00:00:00:00:0a")
	l.Has("other networks have no tag", untagged)
	toVM := "table=32,priority=40500,ip,dl_src=fa:00:00:00:00:0a,nw_dst=192.168.11.41,actions=set_field:fa:16:3e:00:00:41->eth_dst,push_vlan:0x8100,set_field:4197->vlan_vid,goto_table:80"
	l.Has("answers get the network's tag", toVM)
	l.HasNot("and others none", "nw_dst=192.168.10.31,actions=set_field:fa:16:3e:00:00:31->eth_dst,push_vlan")

	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"vlan1"} })
	l.Has("only VLAN networks", tagged)
	l.HasNot("no untagged packets then", untagged)
	l.Put(vlan("vlan1", "x"))
	l.HasNot("no VLAN id, no way out", "nat(src=")
	l.HasNot("nor back", "nw_dst=192.168.11.41")
	l.Has("and it says so", "waits for VLAN id of network vlan1")
	l.Put(vlan("vlan1", "101"))
	l.Has("the id comes", tagged)
	l.Has("the id comes", toVM)
	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"vlan1", "later"} })
	l.Has("a network that is not there may be untagged", untagged)
}

func TestF5EachGatewayHasAMACOfItsOwn(t *testing.T) {
	l := newLab(t)
	life := l.DB.Snapshot().Node("gw1").Created
	l.Put(&model.NodeStatus{Hostname: "gw1", Life: life, State: model.NodeComplete, ExternalMAC: model.MAC{0xfe, 0, 0, 0, 0, 3}})
	for _, part := range []string{"set_field:fe:00:00:00:00:03->eth_src,set_field:fe:00:00:00:00:03->arp_sha", `set_field:fe:00:00:00:00:03->eth_src,output:"int-to-external"`, "fffffffffffffe00000000030806"} {
		l.Has("Snat-A, Snat-U and the announcement", part)
	}
	l.HasNot("nothing has the other one", "fe:00:00:00:00:02")
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.HasNot("another gateway does not take it along", "fe:00:00:00:00:03")
}

func TestS4DownstreamOfAVLANMatchesIPAndPopsTheTag(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Network(model.NetworkVLAN, "ext-net", "100", "172.16.0.0/24"))
	l.Has("HEAD's form", "a1 table=31,priority=40500,ip,dl_vlan=100,nw_dst=172.16.0.100,actions=pop_vlan,set_field:fa:00:00:00:00:0a->eth_src,ct(table=32,zone=1,nat)")
	l.Put(handlertest.Network(model.NetworkVLAN, "ext-net", "x", "172.16.0.0/24"))
	l.HasNot("no VLAN id", "nw_dst=172.16.0.100")
	l.Has("no VLAN id", "waits for VLAN id of network ext-net")
}

func TestS5WhatIsBehindTheRouterDoesNotLeave(t *testing.T) {
	l := newLab(t)
	balancer := func(name, network, vip string) *model.LoadBalancer {
		return &model.LoadBalancer{Name: name, NetworkID: network, VIP: netip.MustParseAddr(vip)}
	}
	l.Put(balancer("inside", "net1", "10.10.0.200"), balancer("outside", "net1", "10.99.0.1"), balancer("again", "flat1", "10.99.0.1"),
		balancer("elsewhere", "net2", "10.98.0.1"), balancer("six", "net1", "fd00::1"))
	all := []string{"192.168.10.0/24", "10.10.0.0/24", "10.99.0.1"}
	l.Want("prefixes, and VIPs outside of them once", "snat/r1", snatA(1, "172.16.0.100", "ac100064")+snatU(1, "172.16.0.100", 1)+
		snatD(1, "172.16.0.100", 1)+drops(1, all...)+portRules(1))
	l.Put(balancer("outside", "net1", "10.10.0.201"))
	l.Delete(model.KindLoadBalancer, "again")
	l.HasNot("a VIP changed", "10.99.0.1")
	l.Put(handlertest.Network(model.NetworkVXLAN, "net1", "1000", "10.11.0.0/24"))
	l.HasNot("a prefix changed", "nw_dst=10.10.0.0/24")
	l.Has("a prefix changed", "nw_dst=10.11.0.0/24")
	l.Has("VIPs are outside now", "nw_dst=10.10.0.200,actions=drop")
	n := handlertest.Network(model.NetworkFLAT, "flat1", "", "192.168.10.0/24")
	n.CIDR = "0.0.0.0/0"
	l.Put(n)
	l.HasNot("a network of all addresses is no reason to drop all", "dl_dst=fa:00:00:00:00:0a,actions=drop")
}

func TestS6WithoutSNATThereAreNoPortRules(t *testing.T) {
	for name, change := range map[string]func(*model.Router){
		"SNAT off":            func(r *model.Router) { r.EnableSNAT = false },
		"no external network": func(r *model.Router) { r.External = nil },
	} {
		l := newLab(t)
		l.Edit("r1", change)
		l.Want(name, "", "")
		l.Put(handlertest.Port(0x11, "net1", "10.10.0.99", "c1"))
		l.Want(name+", a port changes", "", "")
	}
}

func TestS7AChangedPortLeavesNothing(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Port(0x11, "net1", "10.10.0.99", "c1"))
	l.HasNot("address", "nw_dst=10.10.0.11")
	l.Has("address", "nw_dst=10.10.0.99")
	l.Put(handlertest.Port(0x11, "flat1", "192.168.10.99", "c1"))
	l.Want("network", "snat/r1/port/"+vmA, snatP(1, "192.168.10.99", vmA))
	l.Put(handlertest.Port(0x11, "net2", "10.20.0.99", "c1"))
	l.Want("a network that isn't behind the router", "snat/r1/port/"+vmA, "")
}

func TestS8ADeletedGatewayNodeIsNoFault(t *testing.T) {
	l := newLab(t)
	l.Delete(model.KindNode, "gw1")
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.Want("the new gateway has all", "snat/r1", r1Rules(2)+portRules(2))
}

func TestS9NothingStaysOfAnUnelectedGatewayOrARouter(t *testing.T) {
	l := newLab(t)
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "" })
	l.HasNot("no gateway", "table=")
	l.Complete("r1", "gw1", 1)
	l.Delete(model.KindRouter, "r1")
	l.Want("no router", "", "")
}

func TestS10WhatLacksAnAddressOrDoesNotExistIsNoFault(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Port(0x15, "net1", "", "c1"))
	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"flat1", "later", "net1"} })
	l.Want("the rest is there", "snat/r1", r1Rules(1)+portRules(1)+`
		waits for address of port fa:16:3e:00:00:15
		waits for network later`)
}

func TestS11AnUnrelatedUpdateChangesNothing(t *testing.T) {
	l := newLab(t)
	before := l.Lines("")
	text := "another description"
	l.Edit("r1", func(r *model.Router) { r.Description = &text })
	if !slices.Equal(l.Lines(""), before) {
		t.Error("rules or announcements changed")
	}
	if n := strings.Count(strings.Join(before, "\n"), "announces"); n != 1 {
		t.Errorf("%d announcements for one address", n)
	}
}

func TestS12EachRouterHasItsZone(t *testing.T) {
	l := newLab(t)
	r2 := handlertest.Router("r2", "net2")
	r2.MAC[5] = 0x0b
	r2.External.IPText = "172.16.0.200"
	l.Put(r2)
	l.Complete("r2", "gw1", 7)
	for _, want := range []string{
		"ct(commit,zone=1,nat(src=172.16.0.100:1025-65535))", "fa:00:00:00:00:0a->eth_src,ct(table=32,zone=1,nat)",
		"ct(commit,zone=7,nat(src=172.16.0.200:1025-65535))", "fa:00:00:00:00:0b->eth_src,ct(table=32,zone=7,nat)",
	} {
		l.Has("zone", want)
	}
	l.HasNot("never zone 0", "ct(commit,nat")
	l.HasNot("never zone 0", "ct(table=32,nat")
}

func TestS13TheWayOutIsNamedAndWaitedFor(t *testing.T) {
	l := newLab(t)
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.GatewayBridgeName = nil
	l.Put(gw)
	l.Has("no outer network", "waits for gatewayBridgeName of node gw1")
	l.HasNot("no outer network", "table=")
	l.Put(handlertest.Node(model.NodeGateway, "gw1", 1))
	l.Want("it comes", "snat/r1", r1Rules(1)+portRules(1))
}

func TestS16ADetachedNetworkLeavesNothingWhateverElseChanged(t *testing.T) {
	l := newLab(t)
	l.Edit("r1", func(r *model.Router) { r.EnableSNAT = false })
	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"flat1"} })
	l.Want("SNAT off", "", "")
	l.Edit("r1", func(r *model.Router) { r.EnableSNAT = true })
	l.Want("only what is attached comes back", "snat/r1", snatA(1, "172.16.0.100", "ac100064")+snatU(1, "172.16.0.100", 1)+
		snatD(1, "172.16.0.100", 1)+drops(1, "192.168.10.0/24")+snatP(1, "192.168.10.31", vmF))
}

func TestS17APortIsItsMAC(t *testing.T) {
	l := newLab(t)
	r2 := handlertest.Router("r2", "net2")
	r2.MAC[5] = 0x0b
	l.Put(r2, handlertest.Port(0x21, "net2", "10.10.0.11", "c2"))
	l.Complete("r2", "gw1", 2)
	l.Has("equal addresses behind two routers", "b1 table=0,priority=30000,ip,dl_dst="+vmA+",nw_dst=10.10.0.11")
	l.Has("equal addresses behind two routers", "b1 table=0,priority=30000,ip,dl_dst=fa:16:3e:00:00:21,nw_dst=10.10.0.11")
}

func TestN3TheOuterPortIsCutTo15Characters(t *testing.T) {
	l := newLab(t)
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	outer := "external-network"
	gw.GatewayBridgeName = &outer
	l.Put(gw)
	l.Want("as the port was made", "snat/r1", r1Rules(1)+portRules(1))
}

func TestN6AGatewayOfOthersIsNoFault(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Router("r2", "net2"))
	l.Delete(model.KindNode, "gw1")
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.Want("a router without gateway doesn't stop the others", "snat/r1", r1Rules(2)+portRules(2))
}
