package packets

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
)

const (
	gw1, gw2 = lab.Gateway, "gw2"
	// failOver is what may pass from a gateway's death to the first packet
	// through the other one.
	failOver = time.Second
)

// secondOutside is what the second gateway speaks to the outside with.
var secondOutside = mustMAC("fe:00:00:00:00:03")

// newGatewaysWorld is a world with two gateways on one segment outside, in which
// r1 works through gw1.
func newGatewaysWorld(t *testing.T, c lab.FlatConfig, vms []vm, internal ...network) *world {
	t.Helper()
	c.Workers, c.Gateways = 2, 2
	w := newWorldOf(t, c, harness.Options{}, internal...)
	// Linux keeps a young entry of its ARP table for 1 s against a later answer.
	// The gap is to be the gateways' alone.
	if err := w.ext.Command(w.ctx, "sysctl", "-q", "net.ipv4.neigh.eth0.locktime=0").Run(); err != nil {
		t.Fatal(err)
	}
	w.router["gateway"] = gw1
	w.connect(vms...)
	if err := noRule(ofRouter)(w.flows(gw2, lab.BrInt)); err != nil {
		t.Fatalf("%s serves too: %v", gw2, err)
	}
	return w
}

// ofRouter recognises the rules of a gateway that exist for a router.
func ofRouter(f ovs.Flow) bool { return (f.Table == 31 || f.Table == 32) && f.Priority > 0 }

func (w *world) expectGateway(want string) {
	w.t.Helper()
	if r, err := w.Router(w.ctx, "r1"); err != nil || r.Gateway != want {
		w.t.Errorf("the gateway is %q, %v, want %s", r.Gateway, err, want)
	}
}

// announcements accepts gratuitous ARP answers.
func announcements(ip netip.Addr, mac fmt.Stringer) func(probe.ARP) bool {
	return func(a probe.ARP) bool {
		return a.Reply && a.SenderIP == ip && a.TargetIP == ip && a.SenderMAC.String() == mac.String() && a.EthernetSource == a.SenderMAC
	}
}

// A gateway dies: its router moves at once, VMs and the outside learn of it, new
// connections work through the other one. When it comes back it takes nothing
// back, and no rule of the router is on it.
func TestSNAT8(t *testing.T) {
	for name, c := range map[string]struct {
		config   lab.FlatConfig
		internal []network
		vms      []vm
	}{
		"FLAT": {lab.FlatConfig{ControlledPhysical: true}, []network{{id: "flat1", subnet: "192.168.10"}, {id: "flat2", subnet: "192.168.20"}}, []vm{vmB, vmF}},
		"VLAN": {lab.FlatConfig{ExternalVLAN: externalVLAN}, []network{vlan1, vlan2}, []vm{vmVB, vmVC}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGatewaysWorld(t, c.config, c.vms, c.internal...)
			for _, v := range c.vms {
				w.expectOutside(v)
			}
			outer, inner := w.capture(w.ext), w.capture(w.Host(c.vms[0].name))
			traffic := w.startTraffic(c.vms[0])
			watch(never / 3)

			dead := time.Now()
			if err := w.Node(gw1).KillSwitch(); err != nil {
				t.Fatal(err)
			}
			w.waitSNATOn(gw2, snatIP)
			w.expectGateway(gw2)
			for _, v := range c.vms {
				w.expectOutside(v)
			}
			if reply, err := probe.RequestARP(w.within(soon), w.ext.NS, "eth0", peerMAC, peerIP, snatIP); err != nil || reply.SenderMAC != secondOutside {
				t.Errorf("the SNAT address is at %+v, %v, want %s", reply, err, secondOutside)
			}
			first, err := outer.Wait(w.within(soon), 3, probe.IsARP(announcements(snatIP, secondOutside)))
			if err != nil {
				t.Errorf("announcements outside: %v", err)
			} else {
				t.Logf("announced %s after the gateway's death", first[0].Time.Sub(dead))
			}
			if _, err := inner.Wait(w.within(soon), 3, probe.IsARP(announcements(netip.MustParseAddr(c.vms[0].gateway), routerMAC))); err != nil {
				t.Errorf("announcements inside: %v", err)
			}
			traffic.expectGap(t, failOver)

			traffic = w.startTraffic(c.vms[0])
			if err := w.Node(gw1).StartSwitch(w.ctx); err != nil {
				t.Fatal(err)
			}
			w.WaitComplete(w.ctx)
			w.waitRulesOn(gw1, "the returned gateway has its base rules", hasBaseRules)
			watch(never)
			w.expectGateway(gw2)
			if err := noRule(ofRouter)(w.flows(gw1, lab.BrInt)); err != nil {
				t.Errorf("on the returned gateway: %v", err)
			}
			traffic.expectNoLoss(t)
		})
	}
}

// A gateway loses its server but works on: the router moves, and the new gateway's
// announcements win. When the old one is back, the router's rules on it go, and
// nothing is lost.
func TestGatewayThatWasCutOffHasNoRulesOfTheRouterLeft(t *testing.T) {
	w := newGatewaysWorld(t, lab.FlatConfig{}, []vm{vmB}, network{id: "flat2", subnet: "192.168.20"})
	w.expectOutside(vmB)
	cut := []string{gw1 + "/" + lab.BrInt, gw1 + "/" + lab.BrTun}
	w.Relay.Hold(cut...)
	w.waitSNATOn(gw2, snatIP)
	w.expectGateway(gw2)
	w.expectOutside(vmB)
	if noRule(isSNAT)(w.flows(gw1, lab.BrInt)) == nil {
		t.Error("the gateway that nobody reaches has lost its rules")
	}
	// The last announcement is over, whoever else answers is not asked.
	watch(2 * never)
	traffic := w.startTraffic(vmB)
	w.letIn(cut...)
	w.waitRulesOn(gw1, "the router's rules on the returned gateway go", noRule(ofRouter))
	w.WaitComplete(w.ctx)
	watch(never)
	w.expectGateway(gw2)
	traffic.expectNoLoss(t)
}

func hasBaseRules(rules []ovs.Flow) error {
	for _, f := range rules {
		if f.Table == 31 && f.Priority == 0 {
			return nil
		}
	}
	return fmt.Errorf("table 31 has no miss")
}

// expectGap ends the traffic, which may have stopped once, no longer than limit.
func (x traffic) expectGap(t *testing.T, limit time.Duration) {
	t.Helper()
	for name, stream := range map[string]*probe.Stream{"ping": x.ping, "UDP": x.udp} {
		r := stream.Stop()
		t.Logf("%s: %d of %d packets lost, longest gap %s", name, len(r.Lost), r.Sent, r.LongestGap)
		// Answers that never come again make no gap between two answers.
		if r.LongestGap > limit || time.Duration(len(r.Lost))*pulse > limit {
			t.Errorf("%s: %s", name, r)
		}
	}
}
