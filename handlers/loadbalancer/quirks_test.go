package loadbalancer_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/loadbalancer"
	"kvnet/handlers/meet"
	"kvnet/handlers/snat"
	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// Each test shows what kvnet does about a row of docs/deviations.md.

const (
	vip    = "10.10.0.200"
	fip    = "172.16.0.150"
	fipHex = "ac100096"
)

func fip1(l *handlertest.Lab) { l.Put(floatingIP("f1", "r1", fip, vip)) }

func TestL1OtherNetworksReachTheVIPThroughTheRouter(t *testing.T) {
	l := newLab(t)
	l.Has("no floating IP is needed", strings.TrimSpace(wayIn(1, vip)))
}

func TestL2TheVIPIsAnsweredInItsNetwork(t *testing.T) {
	l := newLab(t)
	put(l, balancer("flat", "flat1", "192.168.10.200", nil, tcp(80, 80)), groupID+1)
	l.Has("without a tag", strings.TrimSpace(vipA(1, "vlan_tci=0x0000/0x1fff,arp_tpa=%s", "192.168.10.200")))
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.PhysIntfs = []model.PhysicalIntf{{Network: "other"}, {Network: "flat1"}}
	l.Put(gw)
	l.Has("from the network's port", strings.TrimSpace(vipA(1, `in_port="int-to-flat1",vlan_tci=0x0000/0x1fff,arp_tpa=%s`, "192.168.10.200")))
	l.Put(handlertest.Network(model.NetworkVLAN, "flat1", "77", "192.168.10.0/24"))
	l.Has("with the network's tag", strings.TrimSpace(vipA(1, `dl_vlan=77,arp_tpa=%s`, "192.168.10.200")))
}

func TestL3OtherProtocolsGiveNoRulesAndAReason(t *testing.T) {
	l := newLab(t)
	put(l, balancer("lb1", "net1", vip, []string{"10.10.0.11"}, other("SCTP"), other("icmp"), other("")), groupID)
	l.Want("only ICMP is served", "lb/lb1", lbG(1, groupID, tunnel, vmA, "10.10.0.11")+lbD(1, vip, "icmp", groupID)+
		wayIn(1, vip)+vipA(1, fromTunnel, vip)+
		lbU(1, vip, vmA, "10.10.0.11", "icmp")+lbT(1, vmA, "10.10.0.11", "0x3e8", "10.0.0.1", "vxlan")+`
		waits for protocol TCP, UDP or ICMP in a rule of balancer lb1 instead of "SCTP"
		waits for protocol TCP, UDP or ICMP in a rule of balancer lb1 instead of ""`)
}

func TestL4AMemberWithoutAWorkerLeavesTheOthersWhole(t *testing.T) {
	for _, c := range []struct {
		name   string
		take   func(*handlertest.Lab)
		reason string
	}{
		{"the port has no place", func(l *handlertest.Lab) { l.Put(handlertest.Port(0x11, "net1", "10.10.0.11", "")) }, "place of port " + vmA},
		{"the worker is gone", func(l *handlertest.Lab) { l.Delete(model.KindNode, "w1") }, "worker with integration bridge of:00000000000000c1"},
		{"the worker has no data address", func(l *handlertest.Lab) {
			w := handlertest.Node(model.NodeWorker, "w1", 1)
			w.DataIP = netip.Addr{}
			l.Put(w)
		}, "IPv4 data address of node w1"},
	} {
		l := newLab(t)
		c.take(l)
		l.Want(c.name, "lb/lb1/member/10.10.0.11", lbU(1, vip, vmA, "10.10.0.11", "tcp 80")+"\nwaits for "+c.reason)
		l.Want(c.name, "lb/lb1/member/10.10.0.12", memberB(1))
		l.Put(handlertest.Node(model.NodeWorker, "w1", 1), handlertest.Port(0x11, "net1", "10.10.0.11", "c1"))
		l.Want(c.name+" no more", "lb/lb1", lb1Rules(1))
	}
}

func TestL5AnUpdateLeavesNothingOfTheOldOne(t *testing.T) {
	l := newLab(t)
	fip1(l)
	put(l, balancer("lb1", "net1", vip, []string{"10.10.0.12"}, tcp(80, 80)), groupID)
	l.Want("a member removed", "lb/lb1", lbG(1, groupID, tunnel, vmB, "10.10.0.12")+lbD(1, vip, "tcp 80", groupID)+
		wayIn(1, vip)+vipA(1, fromTunnel, vip)+memberB(1)+lbF(1, fip, fipHex, vip))

	r2 := handlertest.Router("r2", "net2")
	l.Put(r2)
	l.Complete("r2", "gw2", 2)
	put(l, balancer("lb1", "net2", vip, []string{"10.20.0.21"}, tcp(80, 80)), groupID)
	const vmC = "fa:16:3e:00:00:21"
	l.Want("another network, behind another router and gateway", "lb/lb1", lbG(2, groupID, tunnel, vmC, "10.20.0.21")+lbD(2, vip, "tcp 80", groupID)+
		wayIn(2, vip)+vipA(2, fromTunnel, vip)+lbU(2, vip, vmC, "10.20.0.21", "tcp 80")+lbT(2, vmC, "10.20.0.21", "0x7d0", "10.0.0.2", "vxlan"))

	put(l, balancer("lb1", "net1", "10.10.0.201", []string{"10.10.0.11", "10.10.0.12"}, tcp(80, 80)), groupID)
	l.HasNot("another VIP", vip)
}

func TestL6TheGroupKeepsItsID(t *testing.T) {
	l := newLab(t)
	l.Put(balancer("lb1", "net1", "10.10.0.201", []string{"10.10.0.12"}, udp(53, 53)))
	l.Want("after any change", "lb/lb1", lbG(1, groupID, tunnel, vmB, "10.10.0.12")+lbD(1, "10.10.0.201", "udp 53", groupID)+
		wayIn(1, "10.10.0.201")+vipA(1, fromTunnel, "10.10.0.201")+
		lbU(1, "10.10.0.201", vmB, "10.10.0.12", "udp 53")+lbT(1, vmB, "10.10.0.12", "0x3e8", "10.0.0.2", "vxlan"))
	l.Delete(model.KindLoadBalancer, "lb1")
	l.Put(balancer("lb1", "net1", vip, []string{"10.10.0.11"}, tcp(80, 80)))
	l.Want("an earlier life's id is not used", "lb/lb1", "waits for group id of balancer lb1\nwaits for balancer lb1")
}

func TestL7AnEqualUpdateChangesNothing(t *testing.T) {
	l := newLab(t)
	before := l.Lines("")
	lb := balancer("lb1", "net1", vip, []string{"10.10.0.11", "10.10.0.12"}, tcp(80, 80))
	lb.Description = new(string)
	l.Put(lb)
	if after := l.Lines(""); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("got\n%s", strings.Join(after, "\n"))
	}
}

func TestL9MembersFollowTheirPorts(t *testing.T) {
	l := newLab(t)
	l.Delete(model.KindPort, vmA)
	l.Want("deleted", "lb/lb1", lbG(1, groupID, tunnel, vmB, "10.10.0.12")+lbD(1, vip, "tcp 80", groupID)+
		wayIn(1, vip)+vipA(1, fromTunnel, vip)+memberB(1)+"\nwaits for port with address 10.10.0.11 in network net1")
	l.Put(handlertest.Port(0x11, "net1", "10.10.0.11", "c1"))
	l.Want("created", "lb/lb1", lb1Rules(1))
	l.Put(handlertest.Port(0x11, "net1", "10.10.0.11", "c2"))
	l.Has("migrated", strings.TrimSpace(lbT(1, vmA, "10.10.0.11", "0x3e8", "10.0.0.2", "vxlan")))
	l.Put(handlertest.Port(0x11, "net1", "10.10.0.99", "c1"))
	l.HasNot("another address", vmA)
	l.Put(handlertest.Port(0x13, "net1", "10.10.0.11", "c1"))
	l.Has("another port with the address", "set_field:fa:16:3e:00:00:13->eth_dst,set_field:10.10.0.11->ip_dst")
	l.Put(handlertest.Port(0x11, "net1", "10.10.0.11", "c1"))
	l.Want("of two the first by MAC", "lb/lb1", lb1Rules(1))
	l.Put(handlertest.Port(0x11, "net2", "10.10.0.11", "c1"))
	l.HasNot("in another network", vmA)
}

func TestL10PortsWithoutAddressAreNoFault(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Port(0x01, "net1", "", "c1"), handlertest.Port(0x02, "net1", "fd00::2", "c1"))
	l.Want("nothing changes", "lb/lb1", lb1Rules(1))
}

// Row L-11 is as in the original: whatever a member sends from a served port has
// the VIP, to whomever.
func TestL11UpstreamIsAsInTheOriginal(t *testing.T) {
	l := newLab(t)
	l.Has("no condition but member and port", strings.TrimSpace(lbU(1, vip, vmA, "10.10.0.11", "tcp 80")))
}

func TestL12ARangeIsBalancedWhole(t *testing.T) {
	l := newLab(t)
	put(l, balancer("lb1", "net1", vip, []string{"10.10.0.11"}, tcp(8080, 8090), tcp(8090, 8090)), groupID)
	want := lbG(1, groupID, tunnel, vmA, "10.10.0.11") + wayIn(1, vip) + vipA(1, fromTunnel, vip) + lbT(1, vmA, "10.10.0.11", "0x3e8", "10.0.0.1", "vxlan")
	for _, ports := range []string{"0x1f90/0xfff8", "0x1f98/0xfffe", "8090"} {
		want += lbD(1, vip, "tcp "+ports, groupID) + lbU(1, vip, vmA, "10.10.0.11", "tcp "+ports)
	}
	l.Want("by masks, each once", "lb/lb1", want)
	none := model.LoadBalancerRule{Protocol: "TCP"}
	put(l, balancer("lb1", "net1", vip, nil, none, tcp(5, 4), tcp(-1, 70000)), groupID)
	l.Want("no ports, no rules", "lb/lb1", lbG(1, groupID, tunnel)+wayIn(1, vip)+vipA(1, fromTunnel, vip))
}

func TestL13FloatingRulesNeedBothObjects(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Delete(model.KindLoadBalancer, "lb1")
	l.Want("balancer removed", "", "")
	put(l, balancer("lb1", "net1", vip, []string{"10.10.0.11", "10.10.0.12"}, tcp(80, 80)), groupID)
	l.Want("a new balancer of a bound floating IP", "lb/lb1", lb1Rules(1)+lbF(1, fip, fipHex, vip))
}

func TestL14FloatingRulesFollowEveryWrite(t *testing.T) {
	l := newLab(t)
	put(l, balancer("lb2", "net1", "10.10.0.201", nil), groupID+1)
	bound := lb1Rules(1) + lbF(1, fip, fipHex, vip)
	fip1(l)
	l.Want("created bound", "lb/lb1", bound)
	l.Put(floatingIP("f1", "r1", fip, "10.10.0.201"))
	l.Want("moved away", "lb/lb1", lb1Rules(1))
	l.Want("moved to another balancer", "lb/lb2/fip", lbF(1, fip, fipHex, "10.10.0.201"))
	l.Put(floatingIP("f1", "r1", "172.16.0.151", vip))
	l.Want("another address", "lb/lb1", lb1Rules(1)+lbF(1, "172.16.0.151", "ac100097", vip))
	l.Put(floatingIP("f1", "r1", fip, ""))
	l.Want("no longer bound", "lb/lb1", lb1Rules(1))
	fip1(l)
	l.Put(balancer("lb1", "net1", "10.10.0.202", []string{"10.10.0.11", "10.10.0.12"}, tcp(80, 80)))
	l.HasNot("the VIP changed", fip)
	l.Put(balancer("lb1", "net1", vip, []string{"10.10.0.11", "10.10.0.12"}, tcp(80, 80)))
	l.Want("and changed back", "lb/lb1", bound)
	l.Delete(model.KindFloatingIP, "f1")
	l.Want("deleted while bound", "lb/lb1", lb1Rules(1))
}

func TestL15EqualVIPsOfTwoRoutersOnOneGatewayAreKeptApart(t *testing.T) {
	l := newLab(t)
	fip1(l)
	r2 := handlertest.Router("r2", "net2")
	r2.MAC[5] = 0x0b
	l.Put(r2)
	l.Complete("r2", "gw1", 2)
	put(l, balancer("lb0", "net2", vip, []string{"10.20.0.21"}, tcp(80, 80)), groupID+1)
	l.Put(floatingIP("f2", "r2", "172.16.0.151", vip))

	l.Want("the first keeps its shape", "lb/lb1", lb1Rules(1)+lbF(1, fip, fipHex, vip))
	for _, want := range []string{
		"a1 table=31,priority=41500,ip,nw_dst=172.16.0.151,actions=set_field:10.10.0.200->ip_dst,set_field:0x2->metadata,goto_table:32",
		"a1 table=31,priority=41500,ip,dl_dst=fa:00:00:00:00:0b,nw_dst=10.10.0.200,actions=set_field:0x2->metadata,goto_table:32",
		"a1 table=32,priority=41501,tcp,metadata=0x2,nw_dst=10.10.0.200,tp_dst=80,actions=set_field:fa:00:00:00:00:0b->eth_src,group:1795162114",
	} {
		l.Has("the second is marked", want)
	}
	if n := len(l.Lines("lb/lb0/fip")); n != 4 {
		t.Errorf("the second's floating IP has %d lines: %q", n, l.Lines("lb/lb0/fip"))
	}
	keys := map[string]string{}
	for _, line := range l.Lines("") {
		if match, _, ok := strings.Cut(line, "actions="); ok && keys[match] != "" {
			t.Errorf("both at one place:\n%s\n%s", keys[match], line)
		} else if ok {
			keys[match] = line
		}
	}

	l.Decide("r2", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.HasNot("apart by the gateway", "metadata")
	l.Decide("r2", func(s *model.RouterStatus) { s.Gateway = "gw1" })
	l.Has("together again", "metadata=0x2")
	l.Delete(model.KindLoadBalancer, "lb1")
	l.HasNot("the first is gone", "metadata")
}

func TestBalancersOfOneRouterMayShareAVIP(t *testing.T) {
	l := newLab(t)
	fip1(l)
	put(l, balancer("lb2", "net1", vip, []string{"10.10.0.11"}, udp(53, 53)), groupID+1)
	l.Want("no mark among them", "lb/lb2", lbG(1, groupID+1, tunnel, vmA, "10.10.0.11")+lbD(1, vip, "udp 53", groupID+1)+
		wayIn(1, vip)+vipA(1, fromTunnel, vip)+lbU(1, vip, vmA, "10.10.0.11", "udp 53")+lbT(1, vmA, "10.10.0.11", "0x3e8", "10.0.0.1", "vxlan")+
		lbF(1, fip, fipHex, vip))
}

// Two floating IPs of one VIP: the answers can have one of them only.
func TestL23OneFloatingIPOfAVIPWorks(t *testing.T) {
	l := newLab(t)
	first, second := lbF(1, fip, fipHex, vip), lbF(1, "172.16.0.151", "ac100097", vip)
	waits := "\nwaits for VIP 10.10.0.200 to lose floating IP f1 (172.16.0.150), because answers leave with one address"
	l.Put(floatingIP("f2", "r1", "172.16.0.151", vip))
	l.Want("alone", "lb/lb1/fip", second)
	fip1(l)
	l.Want("a second one", "lb/lb1/fip", first+waits)
	l.Put(floatingIP("f3", "r1", "172.16.0.152", vip))
	l.Want("a third one", "lb/lb1/fip", first+waits+waits)
	l.Delete(model.KindFloatingIP, "f3")
	l.Put(floatingIP("f1", "r1", fip, ""))
	l.Want("the first is released", "lb/lb1/fip", second)
	fip1(l)
	l.Put(floatingIP("f1", "r2", fip, vip))
	l.Want("the first is of another router", "lb/lb1/fip", second+"\nwaits for router r2")
	fip1(l)
	l.Put(floatingIP("f2", "r1", fip, vip))
	l.Want("equal addresses are no rivals", "lb/lb1/fip", first+first)
	l.Put(floatingIP("f2", "r1", "172.16.0.151", vip))
	l.Delete(model.KindFloatingIP, "f1")
	l.Want("the first is deleted", "lb/lb1/fip", second)
}

// Lb-FU is as in the original where nobody inside can be a client of the VIP, and below
// Snat-P where VMs of other networks of the router can.
func TestL22LbFUComesAfterSnatPInRoutersWithSeveralNetworks(t *testing.T) {
	l := newLab(t)
	several := lbF(1, fip, fipHex, vip)
	single := strings.ReplaceAll(several, "priority=40400", "priority=41500")
	fip1(l)
	if l.Want("two networks", "lb/lb1/fip", several); flow.PriorityLBLeave >= flow.PriorityStatefulSNAT || flow.PriorityLBLeave <= flow.PriorityDrop {
		t.Errorf("priority %d", flow.PriorityLBLeave)
	}
	for _, step := range []struct {
		name, want string
		internal   []string
	}{
		{"another network is detached", single, []string{"net1"}},
		{"and attached again", several, []string{"net1", "flat1"}},
		{"in place of the balancer's", "", []string{"flat1"}},
		{"alone again", single, []string{"net1"}},
		{"two others come", several, []string{"flat1", "net1", "net2"}},
	} {
		l.Edit("r1", func(r *model.Router) { r.Internal = step.internal })
		l.Want(step.name, "lb/lb1/fip", step.want)
	}
}

// Rules of one table and priority meet only where they do in the original.
func TestL22RulesMeetOnlyAsInTheOriginal(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Port(0x32, "flat1", "192.168.10.32", "c1"))
	fip1(l)
	put(l, balancer("lb2", "flat1", "192.168.10.200", []string{"192.168.10.31", "192.168.10.32"}, other("ICMP"), udp(53, 53)), groupID+1)
	r2 := handlertest.Router("r2", "flat2")
	r2.MAC[5], r2.External = 0x0b, &model.External{IPText: "172.16.0.101", NetworkID: "ext-net"}
	l.Put(handlertest.Network(model.NetworkFLAT, "flat2", "", "192.168.20.0/24"), r2)
	l.Complete("r2", "gw1", 2)
	put(l, balancer("lb0", "flat2", vip, nil, tcp(80, 80)), groupID+2)
	want := map[[2]string]bool{{"Lb-U", "Lb-FD"}: true, {"Lb-U", "L-1"}: true, {"L-2", "L-2"}: true, {"Snat-U", "Snat-D"}: true}
	check := func(step string) {
		t.Helper()
		unknown, accepted := meet.Find(l.DB.Snapshot(), loadbalancer.New(), snat.New())
		for _, p := range unknown {
			t.Errorf("%s: %s", step, p)
		}
		got := map[[2]string]bool{}
		for _, p := range accepted {
			got[p.Kinds] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v meet, want %v", step, got, want)
		}
	}
	check("no floating IP in a router with one network")
	l.Put(floatingIP("f2", "r2", "172.16.0.151", vip))
	want[[2]string{"Lb-D", "Lb-FU"}] = true
	check("one in a router with one network")
}

// Two FLAT networks without a physical interface of their own look the same on the
// gateway: of equal VIPs behind two routers the first one's is answered. The loser's
// rule shows as conflict and goes in when the first goes, as everywhere.
func TestEqualVIPsOfFLATNetworksWithoutInterfaceWantOneResponder(t *testing.T) {
	l := newLab(t)
	r2 := handlertest.Router("r2", "flat2")
	r2.MAC[5] = 0x0b
	l.Put(handlertest.Network(model.NetworkFLAT, "flat2", "", "192.168.20.0/24"), r2)
	l.Complete("r2", "gw1", 2)
	put(l, balancer("lb8", "flat1", "192.168.10.200", nil, tcp(80, 80)), groupID+8)
	put(l, balancer("lb9", "flat2", "192.168.10.200", nil, tcp(80, 80)), groupID+9)
	responder := strings.TrimSpace(vipA(1, "vlan_tci=0x0000/0x1fff,arp_tpa=%s", "192.168.10.200"))
	l.Has("the first", responder)
	l.Has("the second in the same place", strings.ReplaceAll(responder, routerMAC, "fa:00:00:00:00:0b"))
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.PhysIntfs = []model.PhysicalIntf{{Network: "flat2"}}
	l.Put(gw)
	l.Has("with an interface of its own", strings.ReplaceAll(strings.TrimSpace(vipA(1, `in_port="int-to-flat2",vlan_tci=0x0000/0x1fff,arp_tpa=%s`, "192.168.10.200")), routerMAC, "fa:00:00:00:00:0b"))
}

// Balancers with overlapping ports at one member or one VIP: each port is served by the
// first by name, whatever the blocks of ports look like.
func TestL25OverlappingPortsAreLeftToTheFirst(t *testing.T) {
	l := newLab(t)
	l.Delete(model.KindLoadBalancer, "lb1")
	const wide = "tcp 0x50/0xfffc" // 80 to 83
	for _, c := range []struct {
		name, first, second string
		rules               [2]model.LoadBalancerRule
		want                []string
		waits               string
	}{
		{"a part", "lb2", "lb3", [2]model.LoadBalancerRule{tcp(82, 82), tcp(80, 83)}, []string{"tcp 0x50/0xfffe", "tcp 82", "tcp 83"}, "TCP ports 80 to 83"},
		{"the whole", "lb2", "lb3", [2]model.LoadBalancerRule{tcp(80, 83), tcp(81, 81)}, nil, "TCP port 81"},
		{"equal", "lb2", "lb3", [2]model.LoadBalancerRule{tcp(80, 83), tcp(80, 83)}, []string{wide}, ""},
		{"apart", "lb2", "lb3", [2]model.LoadBalancerRule{udp(80, 83), tcp(80, 83)}, []string{wide}, ""},
	} {
		put(l, balancer(c.first, "net1", "10.10.0.201", []string{"10.10.0.11"}, c.rules[0]), groupID+1)
		for _, at := range []struct {
			what, vip, member, owner string
			rule                     func(string) string
		}{
			{"member", "10.10.0.202", "10.10.0.11", "lb/lb3/member", func(m string) string { return lbU(1, "10.10.0.202", vmA, "10.10.0.11", m) }},
			{"VIP", "10.10.0.201", "10.10.0.12", "lb/lb3", func(m string) string { return lbD(1, "10.10.0.201", m, groupID+2) }},
		} {
			put(l, balancer(c.second, "net1", at.vip, []string{at.member}, c.rules[1]), groupID+2)
			table := strings.TrimSpace(at.rule(wide))[:len("a1 table=31")]
			var got, want []string
			for _, line := range l.Lines(at.owner) {
				if strings.HasPrefix(line, table+",priority=41500,") && !strings.Contains(line, vmB) || strings.HasPrefix(line, "waits for") {
					got = append(got, line)
				}
			}
			for _, m := range c.want {
				want = append(want, strings.TrimSpace(at.rule(m)))
			}
			if c.waits != "" {
				want = append(want, "waits for balancer lb2 to leave what it serves of "+c.waits)
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s at one %s: got\n\t%s\nwant\n\t%s", c.name, at.what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
			unknown, _ := meet.Find(l.DB.Snapshot(), loadbalancer.New())
			for _, p := range unknown {
				t.Errorf("%s at one %s: %s", c.name, at.what, p)
			}
		}
	}
	l.Delete(model.KindLoadBalancer, "lb2")
	l.HasNot("the first is gone", "waits for")
}

func TestL16AnyOrderOfNetworkRouterAndBalancer(t *testing.T) {
	l := newLab(t)
	fip1(l)
	all := lb1Rules(1) + lbF(1, fip, fipHex, vip)
	for _, c := range []struct {
		name       string
		take, give func()
		reason     string
	}{
		{"network", func() { l.Delete(model.KindNetwork, "net1") }, func() { l.Put(handlertest.Network(model.NetworkVXLAN, "net1", "1000", "10.10.0.0/24")) }, "network net1"},
		{"network detached", func() { l.Edit("r1", func(r *model.Router) { r.Internal = []string{"flat1"} }) }, func() { l.Edit("r1", func(r *model.Router) { r.Internal = []string{"flat1", "net1"} }) }, "router with network net1"},
		{"gateway", func() { l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "" }) }, func() { l.Complete("r1", "gw1", 1) }, "gateway for router r1"},
	} {
		c.take()
		for _, line := range l.Lines("") {
			if !strings.HasPrefix(line, "waits for ") {
				t.Errorf("%s is missing, but there is %s", c.name, line)
			}
		}
		l.Has(c.name, "waits for "+c.reason)
		c.give()
		l.Want(c.name+" back", "", all)
	}
	l.Delete(model.KindRouter, "r1")
	l.Has("router", "waits for router with network net1")
	l.HasNot("router", "table=")
	l.Put(handlertest.Router("r1", "flat1", "net1"))
	l.Complete("r1", "gw1", 1)
	l.Want("router back", "", all)
}

func TestL17MissingNodesAndPeersAreNoFault(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Edit("r1", func(r *model.Router) { r.Peer = nil })
	l.Want("no peer", "lb/lb1", lb1Rules(1)+"\nwaits for IPv4 address of the peer router of router r1")
	l.Edit("r1", func(r *model.Router) { r.Peer = &model.PeerRouter{IP: handlertest.PeerIP} })
	l.Delete(model.KindNode, "gw1")
	l.HasNot("no node", "table=")
	l.Has("no node", "waits for node gw1")
}

func TestL18FloatingRulesWaitForThePeersMAC(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Decide("r1", func(s *model.RouterStatus) { s.PeerMAC = model.MAC{} })
	l.Want("none without it", "lb/lb1", lb1Rules(1)+"\nwaits for MAC of peer router 172.16.0.1")
	l.Complete("r1", "gw1", 1)
	l.Want("all with it", "lb/lb1", lb1Rules(1)+lbF(1, fip, fipHex, vip))
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.GatewayBridgeName = nil
	l.Put(gw)
	l.Want("nor without the way out", "lb/lb1", lb1Rules(1)+"\nwaits for gatewayBridgeName of node gw1")
}

func TestL19AllMovesToTheNewGatewayAndIsAnnouncedThere(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.Want("moved as one", "lb/lb1", lb1Rules(2)+lbF(2, fip, fipHex, vip))
}

func TestF5FloatingIPsHaveTheGatewaysMAC(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Put(&model.NodeStatus{Hostname: "gw1", Life: l.DB.Snapshot().Node("gw1").Created, ExternalMAC: model.MAC{0xfe, 0, 0, 0, 0, 3}})
	l.Has("Lb-FA", "set_field:fe:00:00:00:00:03->arp_sha,set_field:172.16.0.150->arp_spa")
	l.Has("Lb-FU", "set_field:fe:00:00:00:00:03->eth_src,set_field:172.16.0.150->ip_src")
	l.HasNot("the announcement too", "fe0000000002")
}

func TestL21BucketsLeadToTheTunnelBridgeOrWhereNORMALKnows(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		kind model.NetworkType
		out  string
	}{{model.NetworkGRE, tunnel}, {model.NetworkGENEVE, tunnel}, {model.NetworkSTT, tunnel}, {model.NetworkFLAT, "NORMAL"}, {model.NetworkVLAN, "NORMAL"}} {
		l.Put(handlertest.Network(c.kind, "net1", "7", "10.10.0.0/24"))
		l.Has(string(c.kind), strings.TrimSpace(lbG(1, groupID, c.out, vmA, "10.10.0.11", vmB, "10.10.0.12")))
		if c.out == tunnel {
			l.Has(string(c.kind), strings.TrimSpace(lbT(1, vmA, "10.10.0.11", "0x7", "10.0.0.1", strings.ToLower(string(c.kind)))))
		} else {
			l.HasNot(string(c.kind), "priority=33000")
		}
	}
}

func TestS3TagsOfVLANNetworks(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Put(handlertest.Network(model.NetworkVLAN, "net1", "7", "10.10.0.0/24"), handlertest.Network(model.NetworkVLAN, "ext-net", "100", "172.16.0.0/24"))
	for step, want := range map[string]string{
		"members get their tag":               "table=32,priority=41500,tcp,nw_dst=10.10.0.200,tp_dst=80,actions=set_field:fa:00:00:00:00:0a->eth_src,push_vlan:0x8100,set_field:4103->vlan_vid,group:",
		"and answer with it":                  "table=31,priority=41500,tcp,dl_vlan=7,dl_src=fa:16:3e:00:00:11,nw_src=10.10.0.11,tp_src=80,actions=pop_vlan,set_field:fa:00:00:00:00:0a->eth_src,set_field:10.10.0.200->ip_src,goto_table:32",
		"what comes from outside loses its":   "table=31,priority=41500,ip,dl_vlan=100,nw_dst=172.16.0.150,actions=pop_vlan,set_field:10.10.0.200->ip_dst,goto_table:32",
		"also from a tagged internal network": "table=31,priority=41500,ip,dl_vlan=7,dl_dst=fa:00:00:00:00:0a,nw_dst=10.10.0.200,actions=pop_vlan,goto_table:32",
		"and without a tag from the others":   "table=31,priority=41500,ip,vlan_tci=0x0000/0x1fff,dl_dst=fa:00:00:00:00:0a,nw_dst=10.10.0.200,actions=goto_table:32",
		"what leaves gets the outside's":      "set_field:172.16.0.150->ip_src,set_field:52:54:00:aa:bb:01->eth_dst,push_vlan:0x8100,set_field:4196->vlan_vid,output:\"int-to-external\"",
		"the announcement too":                "announces 172.16.0.150 of r1 on \"int-to-external\": fffffffffffffe000000000281000064080600010800",
	} {
		l.Has(step, want)
	}
	l.Put(handlertest.Network(model.NetworkVLAN, "net1", "x", "10.10.0.0/24"))
	l.HasNot("without a VLAN id", "table=")
	l.Has("without a VLAN id", "waits for VLAN id of network net1")
}

func TestAnotherPeersMACIsFollowed(t *testing.T) {
	l := newLab(t)
	fip1(l)
	l.Decide("r1", func(s *model.RouterStatus) { s.PeerMAC[5] = 9 })
	l.Has("learned", "set_field:172.16.0.150->ip_src,set_field:52:54:00:aa:bb:09->eth_dst")
	l.Edit("r1", func(r *model.Router) {
		r.Peer = &model.PeerRouter{IP: handlertest.PeerIP, MAC: model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 8}, Write: 1}
	})
	l.Has("written", "set_field:172.16.0.150->ip_src,set_field:52:54:00:aa:bb:08->eth_dst")
}

func TestTwoBalancersMayShareAMemberAndAPort(t *testing.T) {
	l := newLab(t)
	put(l, balancer("lb2", "net1", "10.10.0.201", []string{"10.10.0.11"}, tcp(80, 80)), groupID+1)
	l.Want("the first", "lb/lb1", lb1Rules(1))
	l.Want("the second wants the same places, and the same way through the tunnel", "lb/lb2/member/10.10.0.11",
		lbU(1, "10.10.0.201", vmA, "10.10.0.11", "tcp 80")+lbT(1, vmA, "10.10.0.11", "0x3e8", "10.0.0.1", "vxlan"))
}

func TestAFloatingIPOfARouterThatDoesNotServeTheBalancerWaits(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Router("r2", "net1"), floatingIP("f1", "r2", fip, vip))
	l.Complete("r2", "gw2", 2)
	l.Want("another router of the network", "lb/lb1", lb1Rules(1)+"\nwaits for router r2 to serve balancer lb1 instead of router r1")
	l.Put(floatingIP("f1", "r3", fip, vip))
	l.Want("no router at all", "lb/lb1", lb1Rules(1)+"\nwaits for router r3")
}

func TestIPv6IsIgnored(t *testing.T) {
	l := newLab(t)
	put(l, balancer("lb1", "net1", vip, []string{"10.10.0.11", "10.10.0.12", "fd00::1"}, tcp(80, 80)), groupID)
	l.Put(handlertest.Port(0x14, "net1", "fd00::1", "c1"))
	l.Want("a member", "lb/lb1", lb1Rules(1))
	put(l, balancer("lb1", "net1", "fd00::200", nil, tcp(80, 80)), groupID)
	l.Want("a VIP", "lb/lb1", "waits for IPv4 address as VIP of balancer lb1")
}

// TestTheLargestGroupFitsIntoAMessage: REST refuses balancers with more members.
func TestTheLargestGroupFitsIntoAMessage(t *testing.T) {
	l := newLab(t)
	lb := balancer("lb1", "net1", vip, nil, tcp(80, 80))
	for i := range model.MaxMembers {
		ip := netip.AddrFrom4([4]byte{10, 10, byte(1 + i>>8), byte(i)})
		lb.Members = append(lb.Members, ip)
		l.Put(&model.Port{MAC: model.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, NetworkID: "net1", IP: ip})
	}
	put(l, lb, groupID)
	set, _ := loadbalancer.New().Rules(l.DB.Snapshot(), "lb/lb1")
	if len(set.Groups) != 1 || len(set.Groups[0].Buckets) != model.MaxMembers {
		t.Fatalf("%d groups", len(set.Groups))
	}
	g := set.Groups[0]
	for i := range g.Buckets {
		g.Buckets[i].Actions[2] = flow.Output{Port: flow.NumberedPort(1)}
	}
	if _, err := openflow.AddGroup(g); err != nil {
		t.Errorf("%d buckets: %v", len(g.Buckets), err)
	}
	g.Buckets = append(g.Buckets, g.Buckets[0])
	if _, err := openflow.AddGroup(g); err == nil {
		t.Error("one more bucket fits too: MaxMembers is too small")
	}
}
