package packets

import (
	"net/http"
	"testing"
	"time"

	"kvnet/integration/lab"
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
