package network_test

import (
	"fmt"
	"net/netip"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/network"
	"kvnet/model"
)

const (
	respond = `actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:2->arp_op,set_field:fa:00:00:00:00:0a->arp_sha,set_field:%[1]s->arp_spa,set_field:fa:00:00:00:00:0a->eth_src,IN_PORT`
	echo    = `table=31,priority=43000,icmp,dl_dst=fa:00:00:00:00:0a,nw_dst=%[1]s,icmp_type=8,icmp_code=0,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_OF_IP_SRC[]->NXM_OF_IP_DST[],load:0xff->NXM_NX_IP_TTL[],load:0->NXM_OF_ICMP_TYPE[],set_field:%[1]s->ip_src,set_field:fa:00:00:00:00:0a->eth_src,IN_PORT`
)

// responders are Net-PA and Net-PI of a gateway address on a switch. from is the
// match of the network.
func responders(sw, ip, from string) string {
	return fmt.Sprintf(sw+" table=31,priority=41000,arp,"+from+",arp_tpa=%[1]s,arp_op=1,"+respond+"\n"+sw+" "+echo, ip)
}

// announced is the announcement of a network's gateway address on some ports.
func announced(sw, network, ip, tag string, ports ...string) (lines string) {
	for _, p := range ports {
		a := netip.MustParseAddr(ip).As4()
		lines += fmt.Sprintf("\n%[1]s announces %[2]s of network/r1/%[3]s on %[4]q: fffffffffffffa000000000a%[5]s08060001080006040002fa000000000a%[6]xffffffffffff%[6]x", sw, ip, network, p, tag, a)
	}
	return lines
}

func newLab(t *testing.T) *handlertest.Lab {
	l := handlertest.New(t, network.New())
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.PhysIntfs = []model.PhysicalIntf{{Network: "external"}, {Network: "flat1"}, {Network: "a-long-phys-net"}}
	l.Put(gw, handlertest.Node(model.NodeGateway, "gw2", 2),
		handlertest.Network(model.NetworkFLAT, "flat1", "", "192.168.10.0/24"),
		handlertest.Network(model.NetworkVLAN, "vlan1", "101", "192.168.11.0/24"),
		handlertest.Network(model.NetworkVXLAN, "net1", "1000", "10.10.0.0/24"))
	return l
}

func TestTheElectedGatewayAnswersForProviderNetworks(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Router("r1", "flat1", "net1", "vlan1"))
	l.Complete("r1", "gw1", 1)
	l.Want("Net-PA and Net-PI of a FLAT network", "network/r1/flat1", responders("a1", "192.168.10.1", `in_port="int-to-flat1",vlan_tci=0x0000/0x1fff`)+
		announced("a1", "flat1", "192.168.10.1", "", "int-to-flat1"))
	l.Want("of a VLAN network", "network/r1/vlan1", responders("a1", "192.168.11.1", "dl_vlan=101")+
		announced("a1", "vlan1", "192.168.11.1", "81000065", "int-to-flat1", "int-to-a-long-p"))
	l.Want("not of a tunnel network", "network/r1/net1", "")

	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.Want("the gateway changes", "network/r1/flat1", responders("a2", "192.168.10.1", "vlan_tci=0x0000/0x1fff"))
	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"vlan1"} })
	l.Want("a network is detached", "network/r1/flat1", "")
	l.Delete(model.KindRouter, "r1")
	l.Want("the router is gone", "", "")
}

func TestR7EqualGatewayAddressesAreKeptApart(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Network(model.NetworkVLAN, "vlan2", "102", "192.168.10.0/24"))
	r2 := handlertest.Router("r2", "vlan2")
	r2.MAC = model.MAC{0xfa, 0, 0, 0, 0, 0x0b}
	l.Put(handlertest.Router("r1", "flat1"), r2)
	l.Complete("r1", "gw1", 1)
	l.Complete("r2", "gw1", 2)
	l.Has("by port and missing tag", `arp,in_port="int-to-flat1",vlan_tci=0x0000/0x1fff,arp_tpa=192.168.10.1,arp_op=1`)
	l.Has("by tag", "arp,dl_vlan=102,arp_tpa=192.168.10.1,arp_op=1")
	l.Has("pings by the router's MAC", "icmp,dl_dst=fa:00:00:00:00:0a,nw_dst=192.168.10.1")
	l.Has("pings by the router's MAC", "icmp,dl_dst=fa:00:00:00:00:0b,nw_dst=192.168.10.1")
}

func TestN3ThePortOfALongPhysicalNetworkIsCut(t *testing.T) {
	l := newLab(t)
	n := handlertest.Network(model.NetworkFLAT, "id-1", "", "192.168.12.0/24")
	n.Name = "a-long-phys-net"
	l.Put(n, handlertest.Router("r1", "id-1"))
	l.Complete("r1", "gw1", 1)
	l.Has("found by the network's name, cut to 15 characters", `in_port="int-to-a-long-p"`)
}

func TestN13AChangedNetworkChangesItsResponders(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Router("r1", "vlan1"))
	l.Complete("r1", "gw1", 1)
	n := handlertest.Network(model.NetworkVLAN, "vlan1", "105", "192.168.11.0/24")
	n.GatewayIP = netip.MustParseAddr("192.168.11.254")
	l.Put(n)
	l.Want("new address and tag, nothing of the old", "", responders("a1", "192.168.11.254", "dl_vlan=105")+
		announced("a1", "vlan1", "192.168.11.254", "81000069", "int-to-flat1", "int-to-a-long-p"))
}

func TestWhatIsMissingIsWaitedFor(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Router("r1", "later", "vlan1"))
	l.Want("nothing decided", "", `
		waits for network later
		waits for gateway for router r1`)
	l.Complete("r1", "gw3", 1)
	l.Want("the gateway's node is not written yet", "network/r1/vlan1", "waits for node gw3")
	l.Put(handlertest.Node(model.NodeGateway, "gw3", 3))
	l.Want("it comes", "network/r1/vlan1", responders("a3", "192.168.11.1", "dl_vlan=101"))
	l.Put(handlertest.Network(model.NetworkFLAT, "later", "", "192.168.9.0/24"))
	l.Want("the network comes", "network/r1/later", responders("a3", "192.168.9.1", "vlan_tci=0x0000/0x1fff"))
	l.Edit("r1", func(r *model.Router) { r.MAC = model.MAC{} })
	l.Want("no router MAC", "network/r1/later", "waits for MAC of router r1")
	for _, segment := range []string{"", "0", "4095", "70000"} {
		l.Edit("r1", func(r *model.Router) { r.MAC = handlertest.RouterMAC })
		l.Put(handlertest.Network(model.NetworkVLAN, "vlan1", segment, "192.168.11.0/24"))
		l.Want("VLAN id "+segment, "network/r1/vlan1", "waits for VLAN id of network vlan1")
	}
}

func TestS18GatewayAddressesAreAnnouncedWhereTheirNetworkIs(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Router("r1", "flat1", "vlan1"))
	l.Complete("r1", "gw2", 1)
	l.HasNot("no way there is known", "announces")
	l.DB.SwitchConnected(model.Switch{DPID: 0xa2}, []model.SwitchPort{
		{DPID: 0xa2, Name: "int-to-external", Number: 1}, {DPID: 0xa2, Name: "int-to-tun", Number: 2},
		{DPID: 0xa2, Name: "int-to-flt", Number: 3}, {DPID: 0xa2, Name: "tap1", Number: 4},
	})
	l.Put(handlertest.Network(model.NetworkFLAT, "other", "", "192.168.30.0/24"))
	l.Want("ports that may lead to a FLAT network", "network/r1/flat1", responders("a2", "192.168.10.1", "vlan_tci=0x0000/0x1fff")+
		announced("a2", "flat1", "192.168.10.1", "", "int-to-flt"))
	l.Want("with the tag of a VLAN network", "network/r1/vlan1", responders("a2", "192.168.11.1", "dl_vlan=101")+
		announced("a2", "vlan1", "192.168.11.1", "81000065", "int-to-flt"))
	l.DB.SwitchPortChanged(model.SwitchPort{DPID: 0xa2, Name: "int-to-lan2", Number: 5})
	l.Put(handlertest.Network(model.NetworkFLAT, "other", "", "192.168.30.0/24"))
	l.Has("another one comes", `of network/r1/flat1 on "int-to-lan2"`)
	gw := handlertest.Node(model.NodeGateway, "gw2", 2)
	gw.PhysIntfs = []model.PhysicalIntf{{Network: "external"}, {Network: "a-long-phys-net"}, {Network: "a-long-phys-net2"}}
	l.Put(gw)
	l.Want("those of physical interfaces, where there are any", "network/r1/flat1", responders("a2", "192.168.10.1", "vlan_tci=0x0000/0x1fff")+
		announced("a2", "flat1", "192.168.10.1", "", "int-to-a-long-p"))
}

func TestIPv6GatewaysAreIgnored(t *testing.T) {
	l := newLab(t)
	n := handlertest.Network(model.NetworkFLAT, "flat6", "", "192.168.12.0/24")
	n.GatewayIP = netip.MustParseAddr("fd00::1")
	l.Put(n, handlertest.Router("r1", "flat6"))
	l.Complete("r1", "gw1", 1)
	l.Want("no rules", "", "")
}
