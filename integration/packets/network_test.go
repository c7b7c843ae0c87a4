package packets

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"kvnet/integration/lab"
	"kvnet/integration/probe"
)

// A VM of a provider network finds its gateway's address at the elected gateway
// alone.
func TestNET2(t *testing.T) {
	w := newSNATWorld(t, vmF, vmC)
	f := w.Host("vmf")
	capture := w.capture(f)
	if err := probe.Ping(w.within(soon), f.NS, gatewayFlat1); err != nil {
		t.Fatal(err)
	}
	// An answer, not an announcement, which nobody has asked for.
	fromGateway := probe.IsARP(func(a probe.ARP) bool { return a.Reply && a.SenderIP == gatewayFlat1 && a.TargetIP != gatewayFlat1 })
	asked := len(capture.Matching(fromGateway))
	if _, err := probe.RequestARP(w.within(soon), f.NS, "eth0", mustMAC(vmFMAC), netip.MustParseAddr(vmF.ip), gatewayFlat1); err != nil {
		t.Fatal(err)
	}
	watch(never / 3)
	replies := capture.Matching(fromGateway)
	if len(replies) != asked+1 {
		t.Errorf("one question got %d answers:\n%s", len(replies)-asked, describe(replies))
	}
	for _, r := range replies {
		if a, _ := probe.ParseARP(r.Packet()); a.SenderMAC != routerMAC || a.EthernetSource != routerMAC {
			t.Errorf("the gateway's address is at %s, want the router's MAC", a.SenderMAC)
		}
	}
	for _, frame := range capture.Matching(isIPv4(func(_ *layers.Ethernet, ip *layers.IPv4) bool { return ip.SrcIP.String() == gatewayFlat1.String() })) {
		p := frame.Packet()
		ip := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if ethernet := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet); ip.TTL != 255 || ethernet.SrcMAC.String() != routerMACText {
			t.Errorf("echo reply with TTL %d from %s", ip.TTL, ethernet.SrcMAC)
		}
	}
}

// A worker's pipeline survives a restart of the server: a VM and a machine on the
// provider LAN lose nothing.
func TestPIPE1(t *testing.T) {
	w := newSNATWorld(t, vmF)
	lan := netip.MustParseAddr("192.168.10.200")
	if _, err := w.AddLANHost(w.ctx, lab.HostConfig{Name: "lanhost", MAC: "52:54:00:aa:bb:09", Address: lan.String() + "/24"}); err != nil {
		t.Fatal(err)
	}
	if err := probe.Ping(w.within(soon), w.Host("vmf").NS, lan); err != nil {
		t.Fatal(err)
	}
	stream, err := probe.StartPing(w.Host("vmf").NS, lan, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := w.Server.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.WaitComplete(w.ctx)
	watch(never)
	if r := stream.Stop(); len(r.Lost) > 0 || r.Err != nil {
		t.Errorf("lost packets: %s", r)
	}
	for _, f := range w.flows("w1", lab.BrInt) {
		if f.Table == 0 && f.Actions != "goto_table:1" {
			t.Errorf("table 0 of a worker has %s", f)
		}
	}
}
