package packets

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

// The cases with two gateways: LB-17, then LB-16, after which one of them is dead.
func TestLBWithTwoGateways(t *testing.T) {
	for name, c := range map[string]struct {
		config   lab.FlatConfig
		internal []network
		members  []vm
		other    vm
	}{
		"FLAT": {lab.FlatConfig{ControlledPhysical: true}, []network{{id: "flat2", subnet: "192.168.20"}, {id: "flat1", subnet: "192.168.10"}}, flatMembers, vmC},
		"VLAN": {lab.FlatConfig{ExternalVLAN: externalVLAN}, []network{vlan1, vlan2}, vlanMembers, vmVC},
	} {
		t.Run(name, func(t *testing.T) {
			plain := newGatewaysWorld(t, c.config, append(c.members[:len(c.members):len(c.members)], c.other), c.internal...)
			w := newBalancerWorld(plain, c.members, c.other)
			w.run("LB-17", (*balancerWorld).lb17)
			w.run("LB-16", (*balancerWorld).lb16)
		})
	}
}

// A balancer gets another network, whose router has another gateway: nothing stays
// on the old one.
func (w *balancerWorld) lb17() {
	internal := w.router["internal"]
	w.updateRouter(map[string]any{"internal": []string{w.members[0].network}})
	w.secondRouter(gw2, w.other.network)
	w.t.Cleanup(func() {
		w.remove("floating-ip", "f1")
		w.remove("router", "r2")
		w.updateRouter(map[string]any{"internal": internal})
		w.expectOutside(w.other)
	})
	b := w.balancer()
	w.serveFirst(b)
	w.expectSpread(w.askOutside(40, firstFIP), 4, w.members[:2]...)

	b.network = w.other.network
	b.setMembers(w.other)
	w.update(b)
	w.expectNothingOn(gw1)
	w.waitGroups(gw2, b.members)
	w.Must(w.ctx, http.MethodPut, server.ObjectPath("floating-ip", "f1"), floatingIP("f1", "r2", firstFIP, b.vip))
	w.waitFloating(gw2, firstFIP)
	w.expectNothingOn(gw1)
	w.expectSpread(w.askOutside(10, firstFIP), 10, w.other)
}

// The gateway dies: the other one serves the balancer and announces its floating
// IP, and on the returned one is nothing.
func (w *balancerWorld) lb16() {
	w.serveFirst(w.balancer())
	w.expectSpread(w.askOutside(40, firstFIP), 4, w.members[:2]...)
	capture, traffic := w.capture(w.ext), w.startOutside()
	dead := time.Now()
	if err := w.Node(gw1).KillSwitch(); err != nil {
		w.t.Fatal(err)
	}
	w.waitGroups(gw2, w.balancer().members)
	w.waitFloating(gw2, firstFIP)
	first, err := capture.Wait(w.within(soon), 3, probe.IsARP(announcements(firstFIP, secondOutside)))
	if err != nil {
		w.t.Errorf("announcements: %v", err)
	} else {
		w.t.Logf("announced %s after the gateway's death", first[0].Time.Sub(dead))
	}
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
	traffic.expectGap(w.t, failOver)

	if err := w.Node(gw1).StartSwitch(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	w.WaitComplete(w.ctx)
	w.waitRulesOn(gw1, "the returned gateway has its base rules", hasBaseRules)
	w.expectGateway(gw2)
	w.expectNothingOn(gw1)
	w.expectSpread(w.askOutside(40, firstFIP), 4, w.members[:2]...)
}

// A client in another network, behind another patch port of the gateway, reaches
// the VIP of a balancer without floating IP through its router, and is answered
// with the VIP (LB-18). Behind the members' own port the gateway's bridge would have
// to send a packet back to where it came from.
func TestLB18(t *testing.T) {
	plain := newWorld(t, lab.FlatConfig{Workers: 2, ControlledPhysical: true}, harness.Options{})
	plain.connect(vmA, vmB, vmD, vmC)
	w := newBalancerWorld(plain, flatMembers, vmC)
	client, address := w.clientBehindPatch("192.168.10.77"), netip.MustParseAddr("192.168.10.77")
	b := w.balancer()
	w.create(b)
	w.waitGroups(gw1, b.members)
	vip := netip.MustParseAddr(b.vip)
	if err := probe.Ping(w.within(soon), client.NS, gatewayFlat1); err != nil {
		t.Fatal(err)
	}
	if err := probe.Ping(w.within(soon), client.NS, vip); err != nil {
		t.Error(err)
	}
	w.expectSpread(w.ask(many, client, address, netip.AddrPortFrom(vip, 80)), many/4, w.members[:2]...)
	if err := probe.AskUDP(w.within(soon), client.NS, 0, netip.AddrPortFrom(vip, 53)); err != nil {
		t.Error(err)
	}

	// In its own network the VIP is found, at the router's MAC.
	reply, err := probe.RequestARP(w.within(soon), w.Host(vmD.name).NS, "eth0", mustMAC(vmD.mac), netip.MustParseAddr(vmD.ip), vip)
	if err != nil || reply.SenderMAC != routerMAC {
		t.Errorf("the VIP is at %+v, %v, want %s", reply, err, routerMAC)
	}
	w.delete("loadbalancer", b.name)
	w.expectNothingLeft()
}

// clientBehindPatch is a machine of flat1 on a bridge of the gateway that a patch
// port of its own joins to br-int.
func (w *balancerWorld) clientBehindPatch(address string) *lab.Host {
	w.t.Helper()
	const bridge = "br-side"
	gateway := w.Node(gw1)
	if err := gateway.AddBridge(w.ctx, ovs.Bridge{Name: bridge, Ports: []ovs.Port{{Name: "side-to-int", Kind: ovs.Patch, Peer: "int-to-side"}}}); err != nil {
		w.t.Fatal(err)
	}
	if err := gateway.AddPort(w.ctx, lab.BrInt, ovs.Port{Name: "int-to-side", Kind: ovs.Patch, Peer: "side-to-int"}); err != nil {
		w.t.Fatal(err)
	}
	const mac = "fa:16:3e:00:00:77"
	client, err := w.AddHost(w.ctx, gateway, bridge, lab.HostConfig{Name: "client", MAC: mac, Address: address + "/24", Gateway: gatewayFlat1.String()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/port", map[string]any{
		"vmName": "client", "networkId": "flat1", "macAddress": mac, "ipAddress": address,
		"deviceId": lab.BridgeDPID(gw1, lab.BrInt).String(),
	})
	return client
}
