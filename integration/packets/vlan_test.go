package packets

import (
	"net/netip"
	"testing"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/probe"
)

const externalVLAN = 100

var (
	vlan1 = network{"vlan1", "192.168.11", 101}
	vlan2 = network{"vlan2", "192.168.12", 102}

	vmVA = vm{"vma", "vlan1", "w1", vmAMAC, "192.168.11.11", "192.168.11.1"}
	vmVB = vm{"vmb", "vlan1", "w2", vmBMAC, "192.168.11.12", "192.168.11.1"}
	vmVC = vm{"vmc", "vlan2", "w2", vmCMAC, "192.168.12.21", "192.168.12.1"}

	vmFlat = vm{"vmflat", "flat2", "w2", vmDMAC, "192.168.20.14", "192.168.20.1"}
)

// expectOutside has a VM reach the outside by TCP, UDP and ICMP with the router's
// address.
func (w *world) expectOutside(v vm) {
	w.t.Helper()
	ns := w.Host(v.name).NS
	if err := probe.Ping(w.within(soon), ns, internet); err != nil {
		w.t.Errorf("%s: %v", v.name, err)
	}
	if seen, err := probe.AskTCP(w.within(soon), ns, 0, w.services.tcp.Address); err != nil || seen.Addr() != snatIP {
		w.t.Errorf("%s: seen as %s, %v, want %s", v.name, seen, err, snatIP)
	}
	before := len(w.services.udp.Peers())
	if err := probe.AskUDP(w.within(soon), ns, 0, w.services.udp.Address); err != nil {
		w.t.Errorf("%s: %v", v.name, err)
	}
	for _, p := range w.services.udp.Peers()[before:] {
		if p.Addr() != snatIP {
			w.t.Errorf("%s: UDP seen as %s, want %s", v.name, p, snatIP)
		}
	}
}

// The external network is a VLAN network (S-3, S-4): the external host is in the
// VLAN, its switch takes and gives tagged packets only. The upstream router's MAC
// is found by ARP, the SNAT address is announced and answered for, and VMs reach
// the outside.
func TestSNAT9(t *testing.T) {
	for name, c := range map[string]struct {
		internal []network
		vms      []vm
	}{
		"FLAT inside": {[]network{{id: "flat1", subnet: "192.168.10"}, {id: "flat2", subnet: "192.168.20"}}, []vm{vmA, vmB, vmC}},
		"VLAN inside": {[]network{vlan1, vlan2}, []vm{vmVA, vmVB, vmVC}},
		"both inside": {[]network{vlan1, {id: "flat2", subnet: "192.168.20"}}, []vm{vmVA, vmFlat}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, lab.FlatConfig{Workers: 2, ControlledPhysical: true, ExternalVLAN: externalVLAN}, harness.Options{}, c.internal...)
			capture := w.capture(w.ext)
			w.connect(c.vms...)
			for _, v := range c.vms {
				w.expectOutside(v)
			}
			if _, err := capture.Wait(w.within(soon), 3, probe.IsARP(func(a probe.ARP) bool {
				return a.Reply && a.SenderIP == snatIP && a.TargetIP == snatIP && a.SenderMAC == outside
			})); err != nil {
				t.Errorf("announcements of the SNAT address: %v", err)
			}
			if reply, err := probe.RequestARP(w.within(soon), w.ext.NS, "eth0", peerMAC, peerIP, snatIP); err != nil || reply.SenderMAC != outside {
				t.Errorf("the SNAT address: %+v, %v", reply, err)
			}
			if _, err := probe.AskTCP(w.within(never), w.ext.NS, 0, netip.AddrPortFrom(snatIP, 22)); err == nil {
				t.Error("a connection from outside was accepted")
			}
		})
	}
}

// Internal networks are VLAN networks, alone or beside a FLAT one (S-3): their
// VMs, in their VLANs, reach the outside, whose host takes untagged packets only, and
// their gateway's address.
func TestVLANNetworksInside(t *testing.T) {
	for name, c := range map[string]struct {
		internal []network
		vms      []vm
	}{
		"VLAN networks": {[]network{vlan1, vlan2}, []vm{vmVA, vmVB, vmVC}},
		"beside FLAT":   {[]network{vlan1, {id: "flat2", subnet: "192.168.20"}}, []vm{vmVA, vmVB, vmFlat}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, lab.FlatConfig{Workers: 2, ControlledPhysical: true}, harness.Options{}, c.internal...)
			capture := w.capture(w.ext)
			w.connect(c.vms...)
			for _, v := range c.vms {
				w.expectOutside(v)
				if err := probe.Ping(w.within(soon), w.Host(v.name).NS, netip.MustParseAddr(v.gateway)); err != nil {
					t.Errorf("%s: %v", v.name, err)
				}
			}
			// What isn't behind the router stays inside, tagged or not (S-5).
			for _, inside := range []string{"192.168.11.99:80", c.vms[len(c.vms)-1].gateway + ":22"} {
				known := len(capture.Matching(anyIPv4))
				if _, err := probe.AskTCP(w.within(never/2), w.Host(vmVA.name).NS, 0, netip.MustParseAddrPort(inside)); err == nil {
					t.Errorf("%s accepts a connection", inside)
				}
				if n := len(capture.Matching(anyIPv4)); n != known {
					t.Errorf("%d packets for %s left the router", n-known, inside)
				}
			}
		})
	}
}
