package packets

import (
	"net/http"
	"net/netip"
	"testing"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

// Clients in two other networks, behind another patch port of the gateway, reach the
// VIP of a balancer through their router and are answered with the VIP (LB-18), while
// a floating IP is bound to it and while none is. Behind the members' own port the
// gateway's bridge would have to send a packet back to where it came from.
func TestLB18(t *testing.T) {
	for name, c := range map[string]struct {
		config   lab.FlatConfig
		internal []network
		members  []vm
		other    vm
		clients  []vm
	}{
		"FLAT": {
			lab.FlatConfig{Workers: 2, ControlledPhysical: true},
			[]network{{id: "flat1", subnet: "192.168.10"}, {id: "flat2", subnet: "192.168.20"}, {id: "flat3", subnet: "192.168.30"}}, flatMembers, vmC,
			[]vm{
				{"client1", "flat1", gw1, "fa:16:3e:00:00:77", "192.168.10.77", "192.168.10.1"},
				{"client3", "flat3", gw1, "fa:16:3e:00:00:78", "192.168.30.77", "192.168.30.1"},
			},
		},
		"VLAN": {
			lab.FlatConfig{Workers: 2, ExternalVLAN: externalVLAN}, []network{vlan1, vlan2, {"vlan3", "192.168.13", 103}}, vlanMembers, vmVC,
			[]vm{
				{"client2", "vlan2", gw1, "fa:16:3e:00:00:77", "192.168.12.77", "192.168.12.1"},
				{"client3", "vlan3", gw1, "fa:16:3e:00:00:78", "192.168.13.77", "192.168.13.1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain := newWorldOf(t, c.config, harness.Options{}, c.internal...)
			plain.connect(append(c.members[:len(c.members):len(c.members)], c.other)...)
			w := newBalancerWorld(plain, c.members, c.other)
			w.addSideBridge()
			w.lb18(w.sideClients(c.clients...))
		})
	}
}

func (w *balancerWorld) lb18(clients map[netip.Addr]*lab.Host) {
	b := w.balancer()
	w.create(b)
	w.waitGroups(gw1, b.members)
	vip := netip.MustParseAddr(b.vip)
	var lasting []*probe.Connection
	for _, client := range clients {
		c, err := probe.OpenTCP(w.within(soon), client.NS, netip.AddrPortFrom(vip, 80))
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = c.Close() })
		lasting = append(lasting, c)
	}
	served := func(when string) {
		w.t.Helper()
		w.expectServedInside(when, clients, vip)
		for _, c := range lasting {
			if err := c.Echo(when, soon); err != nil {
				w.t.Errorf("%s: a connection that lasts: %v", when, err)
			}
		}
	}
	served("without a floating IP")
	w.bind("f1", firstFIP, b.vip)
	w.waitFloating(gw1, firstFIP)
	served("with a floating IP")
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
	if err := probe.Ping(w.within(soon), w.ext.NS, firstFIP); err != nil {
		w.t.Error(err)
	}
	w.delete("floating-ip", "f1")
	w.waitRules("no way out with the floating IP", noRule(func(f ovs.Flow) bool { return f.Has("nw_src=" + b.vip) }))
	served("without a floating IP again")

	// In its own network the VIP is found, at the router's MAC.
	v := w.members[2]
	reply, err := probe.RequestARP(w.within(soon), w.Host(v.name).NS, "eth0", mustMAC(v.mac), netip.MustParseAddr(v.ip), vip)
	if err != nil || reply.SenderMAC != routerMAC {
		w.t.Errorf("the VIP is at %+v, %v, want %s", reply, err, routerMAC)
	}

	w.delete("loadbalancer", b.name)
	w.expectNothingLeft()
	w.bind("f2", secondFIP, b.vip)
	w.create(b)
	w.waitGroups(gw1, b.members)
	w.waitFloating(gw1, secondFIP)
	w.expectServedInside("with a floating IP that was there before", clients, vip)
	w.expectSpread(w.askOutside(40, secondFIP), 4, w.members[:2]...)
	w.delete("loadbalancer", b.name)
	w.expectNothingLeft()
}

// expectServedInside has clients reach a VIP by TCP, which spreads over the members,
// UDP and ICMP.
func (w *balancerWorld) expectServedInside(when string, clients map[netip.Addr]*lab.Host, vip netip.Addr) {
	w.t.Helper()
	for address, client := range clients {
		w.expectSpread(w.ask(40, client, address, netip.AddrPortFrom(vip, 80)), 4, w.members[:2]...)
		if err := probe.AskUDP(w.within(soon), client.NS, 0, netip.AddrPortFrom(vip, 53)); err != nil {
			w.t.Errorf("%s: %v", when, err)
		}
		if err := probe.Ping(w.within(soon), client.NS, vip); err != nil {
			w.t.Errorf("%s: %v", when, err)
		}
	}
}

const sideBridge = "br-side"

// addSideBridge gives the gateway another bridge, that a patch port of its own joins
// to br-int.
func (w *balancerWorld) addSideBridge() {
	w.t.Helper()
	gateway := w.Node(gw1)
	if err := gateway.AddBridge(w.ctx, ovs.Bridge{Name: sideBridge, Ports: []ovs.Port{{Name: "side-to-int", Kind: ovs.Patch, Peer: "int-to-side"}}}); err != nil {
		w.t.Fatal(err)
	}
	if err := gateway.AddPort(w.ctx, lab.BrInt, ovs.Port{Name: "int-to-side", Kind: ovs.Patch, Peer: "side-to-int"}); err != nil {
		w.t.Fatal(err)
	}
}

// sideClients are machines on the side bridge, by address.
func (w *balancerWorld) sideClients(vms ...vm) map[netip.Addr]*lab.Host {
	w.t.Helper()
	clients := map[netip.Addr]*lab.Host{}
	for _, v := range vms {
		client, err := w.AddHost(w.ctx, w.Node(gw1), sideBridge, lab.HostConfig{Name: v.name, MAC: v.mac, Address: v.ip + "/24", Gateway: v.gateway, VLAN: w.vlans[v.network]})
		if err != nil {
			w.t.Fatal(err)
		}
		w.writePort(http.MethodPost, server.NetworkingPath+"/port", v, lab.BridgeDPID(v.worker, lab.BrInt).String())
		clients[netip.MustParseAddr(v.ip)] = client
	}
	return clients
}
