package packets

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

// A VM reaches the outside by TCP, UDP and ICMP with the router's address, and
// the answers come back.
func TestSNAT1(t *testing.T) {
	w := newSNATWorld(t, vmB)
	b := w.Host("vmb")
	capture := w.capture(w.ext)

	seen, err := probe.AskTCP(w.within(soon), b.NS, 5000, w.services.tcp.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.AskUDP(w.within(soon), b.NS, 5001, w.services.udp.Address); err != nil {
		t.Fatal(err)
	}
	if err := probe.Ping(w.within(soon), b.NS, internet); err != nil {
		t.Fatal(err)
	}
	for protocol, peer := range map[string]netip.AddrPort{"TCP": seen, "UDP": w.services.udp.Peers()[0]} {
		if peer.Addr() != snatIP || peer.Port() < 1025 {
			t.Errorf("%s: seen as %s, want %s and a port from 1025 on", protocol, peer, snatIP)
		}
	}
	protocols := map[layers.IPProtocol]bool{}
	for _, f := range capture.Matching(anyIPv4) {
		p := f.Packet()
		ethernet := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		ip := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		protocols[ip.Protocol] = true
		if ip.SrcIP.String() != snatIP.String() || ethernet.SrcMAC.String() != outside.String() || ethernet.DstMAC.String() != peerMAC.String() {
			t.Errorf("left with other addresses than the router's: %s", f)
		}
	}
	if len(protocols) != 3 {
		t.Errorf("captured protocols %v, want TCP, UDP and ICMP", protocols)
	}
}

// Two VMs that use the same port get different ones outside, and both are served.
func TestSNAT2(t *testing.T) {
	w := newSNATWorld(t, vmA, vmB)
	hold := func(v vm) netip.AddrPort {
		t.Helper()
		seen, err := probe.AskTCP(w.within(soon), w.Host(v.name).NS, 5000, w.services.tcp.Address)
		if err != nil {
			t.Fatal(err)
		}
		if err := probe.AskUDP(w.within(soon), w.Host(v.name).NS, 5000, w.services.udp.Address); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	if a, b := hold(vmA), hold(vmB); a.Port() == b.Port() || a.Addr() != snatIP || b.Addr() != snatIP {
		t.Errorf("TCP: both are seen as %s and %s, want %s with different ports", a, b, snatIP)
	}
	ports := map[uint16]bool{}
	for _, p := range w.services.udp.Peers() {
		ports[p.Port()] = true
	}
	if len(ports) != 2 {
		t.Errorf("UDP: seen from ports %v, want two", ports)
	}
}

// The outside finds the router's address by ARP.
func TestSNAT3(t *testing.T) {
	w := newSNATWorld(t)
	reply, err := probe.RequestARP(w.within(soon), w.ext.NS, "eth0", peerMAC, peerIP, snatIP)
	if err != nil {
		t.Fatal(err)
	}
	if reply.SenderMAC != outside || reply.EthernetSource != outside || reply.TargetMAC != peerMAC || reply.EthernetTarget != peerMAC {
		t.Errorf("answer %+v, want %s", reply, outside)
	}
}

// Nobody outside can open a connection inward.
func TestSNAT4(t *testing.T) {
	w := newSNATWorld(t, vmA, vmB)
	capture := w.capture(w.ext)
	miss := func() uint64 {
		for _, f := range w.flows(lab.Gateway, lab.BrInt) {
			if f.Table == 32 && f.Priority == 0 {
				return f.Packets
			}
		}
		t.Fatal("table 32 has no miss")
		return 0
	}
	before := miss()
	if _, err := probe.AskTCP(w.within(never), w.ext.NS, 0, netip.AddrPortFrom(snatIP, 22)); err == nil {
		t.Error("a connection from outside was accepted")
	}
	harness.Eventually(t, soon, "the miss of table 32 counts the packets", func() error {
		if miss() == before {
			return fmt.Errorf("still %d", before)
		}
		return nil
	})
	if frames := capture.Matching(anyIPv4); len(frames) > 0 {
		t.Errorf("something answered:\n%s", describe(frames))
	}
}

// A new SNAT address is announced, and nothing is announced for nothing.
func TestSNAT5(t *testing.T) {
	w := newWorld(t, lab.FlatConfig{Workers: 1, ControlledPhysical: true}, harness.Options{})
	capture := w.capture(w.ext)
	announced := func(ip netip.Addr) []probe.Frame {
		return capture.Matching(probe.IsARP(func(a probe.ARP) bool { return a.Reply && a.SenderIP == ip && a.TargetIP == ip }))
	}
	w.createRouter()
	w.waitSNAT(snatIP)
	harness.Eventually(t, soon, "an announcement with the rule and 1 s and 3 s later", func() error {
		if n := len(announced(snatIP)); n != 3 {
			return fmt.Errorf("%d announcements", n)
		}
		return nil
	})
	frames := announced(snatIP)
	for _, f := range frames {
		a, _ := probe.ParseARP(f.Packet())
		want := probe.ARP{
			Reply: true, SenderMAC: outside, SenderIP: snatIP, TargetMAC: broadcast, TargetIP: snatIP,
			EthernetSource: outside, EthernetTarget: broadcast, Length: 42, HardwareAndLengths: true,
		}
		if a != want {
			t.Errorf("announced %+v\nwant %+v", a, want)
		}
	}
	for i, want := range []time.Duration{time.Second, 3 * time.Second} {
		if got := frames[i+1].Time.Sub(frames[0].Time); got < want-300*time.Millisecond || got > want+1500*time.Millisecond {
			t.Errorf("announced again after %s, want %s", got, want)
		}
	}

	w.updateRouter(map[string]any{"description": "nothing that the switches need to know"})
	watch(never)
	if n := len(announced(snatIP)); n != 3 {
		t.Errorf("an update that changes nothing outside made %d announcements more", n-3)
	}

	other := netip.MustParseAddr("172.16.0.101")
	w.updateRouter(map[string]any{"external": map[string]any{"ip": other.String(), "network": "ext-net"}})
	harness.Eventually(t, soon, "an announcement of the new address", func() error {
		if len(announced(other)) == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
}

// When SNAT goes off nothing leaves any more, in old connections neither, and no
// rule stays.
func TestSNAT6(t *testing.T) {
	w := newSNATWorld(t, vmA, vmB)
	stream, err := probe.StartUDP(w.Host("vmb").NS, w.services.udp.Address, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, soon, "the connection works", func() error {
		if stream.Answered() == 0 {
			return fmt.Errorf("no answer")
		}
		return nil
	})
	w.updateRouter(map[string]any{"enableSnat": false})
	w.waitRules("no SNAT rule on br-int", noRule(isSNAT))
	if left := slices.DeleteFunc(w.flows(lab.Gateway, lab.BrTun), func(f ovs.Flow) bool { return !isSNAT(f) }); len(left) > 0 {
		t.Errorf("left on br-tun: %v", left)
	}
	capture := w.capture(w.ext)
	if _, err := probe.AskTCP(w.within(never), w.Host("vma").NS, 0, w.services.tcp.Address); err == nil {
		t.Error("a new connection was made")
	}
	if frames := capture.Matching(anyIPv4); len(frames) > 0 {
		t.Errorf("left the router:\n%s", describe(frames))
	}
	stream.Stop()
}

// isSNAT recognises Snat-A, U, D, P and T.
func isSNAT(f ovs.Flow) bool {
	_, fromPort := f.Field("in_port")
	return f.Priority == 40500 ||
		f.Priority == 41000 && strings.Contains(f.Actions, outside.String()) ||
		f.Table == 0 && f.Priority == 30000 && !fromPort
}

func noRule(match func(ovs.Flow) bool) func([]ovs.Flow) error {
	return func(rules []ovs.Flow) error {
		if i := slices.IndexFunc(rules, match); i >= 0 {
			return fmt.Errorf("there is %s", rules[i])
		}
		return nil
	}
}

// Another SNAT address takes the place of the old one, which falls silent.
func TestSNAT7(t *testing.T) {
	w := newSNATWorld(t, vmB)
	other := netip.MustParseAddr("172.16.0.101")
	w.updateRouter(map[string]any{"external": map[string]any{"ip": other.String(), "network": "ext-net"}})
	w.waitSNAT(other)
	w.waitRules("no rule of the old address", noRule(func(f ovs.Flow) bool {
		return strings.Contains(f.String(), snatIP.String()+",") || strings.Contains(f.String(), snatIP.String()+" ")
	}))
	if reply, err := probe.RequestARP(w.within(never), w.ext.NS, "eth0", peerMAC, peerIP, snatIP); err == nil {
		t.Errorf("the old address is answered: %+v", reply)
	}
	capture := w.capture(w.ext)
	if _, err := probe.AskTCP(w.within(never), w.ext.NS, 0, netip.AddrPortFrom(snatIP, 22)); err == nil {
		t.Error("the old address accepts a connection")
	}
	if frames := capture.Matching(anyIPv4); len(frames) > 0 {
		t.Errorf("the old address answers:\n%s", describe(frames))
	}
	if reply, err := probe.RequestARP(w.within(soon), w.ext.NS, "eth0", peerMAC, peerIP, other); err != nil || reply.SenderMAC != outside {
		t.Errorf("the new address: %+v, %v", reply, err)
	}
	seen, err := probe.AskTCP(w.within(soon), w.Host("vmb").NS, 0, w.services.tcp.Address)
	if err != nil || seen.Addr() != other {
		t.Errorf("seen as %s, %v, want %s", seen, err, other)
	}
}

// What is meant for inside doesn't leave with the router's address (S-5).
func TestSNAT10(t *testing.T) {
	w := newSNATWorld(t, vmB)
	b := w.Host("vmb")
	capture := w.capture(w.ext)
	for _, inside := range []netip.AddrPort{
		netip.AddrPortFrom(gatewayFlat2, 22),
		netip.AddrPortFrom(gatewayFlat1, 22),
		netip.MustParseAddrPort("192.168.10.99:80"),
	} {
		if _, err := probe.AskTCP(w.within(never/2), b.NS, 0, inside); err == nil {
			t.Errorf("%s accepts a connection", inside)
		}
	}
	if frames := capture.Matching(anyIPv4); len(frames) > 0 {
		t.Errorf("left the router:\n%s", describe(frames))
	}
	// The same VM does reach the outside, so the silence means something.
	if _, err := probe.AskTCP(w.within(soon), b.NS, 0, w.services.tcp.Address); err != nil {
		t.Error(err)
	}
}

// The rules of a VM come and go with its port.
func TestSNAT11(t *testing.T) {
	w := newSNATWorld(t, vmB)
	isOfD := func(f ovs.Flow) bool { return f.Table == 32 && f.Has("nw_dst="+vmD.ip) }
	w.waitRules("no rule of a VM that isn't there", noRule(isOfD))
	w.startVM(vmD)
	w.waitRules("the VM's rule", func(rules []ovs.Flow) error {
		for _, f := range rules {
			if isOfD(f) && strings.Contains(f.Actions, vmDMAC) {
				return nil
			}
		}
		return fmt.Errorf("none")
	})
	d := w.Host("vmd")
	if seen, err := probe.AskTCP(w.within(soon), d.NS, 0, w.services.tcp.Address); err != nil || seen.Addr() != snatIP {
		t.Errorf("seen as %s, %v", seen, err)
	}
	w.Must(w.ctx, http.MethodDelete, server.ObjectPath("port", vmDMAC), nil)
	w.waitRules("no rule of a VM whose port is gone", noRule(isOfD))
	if err := probe.Ping(w.within(never), d.NS, internet); err == nil {
		t.Error("a VM without port is answered")
	}
	if err := probe.Ping(w.within(soon), w.Host("vmb").NS, internet); err != nil {
		t.Errorf("the other VM: %v", err)
	}
}
