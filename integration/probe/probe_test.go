package probe_test

import (
	"net/netip"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/probe"
)

// Two hosts on one learning switch can do all that the probes know.
func TestProbesWorkOverAnOrdinarySwitch(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	l := harness.Lab(t)
	a, b := twoHosts(ctx, t, l)
	addressA, addressB := netip.MustParseAddr("192.168.7.1"), netip.MustParseAddr("192.168.7.2")

	capture, err := probe.StartCapture(b.NS, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	arp, err := probe.RequestARP(ctx, a.NS, "eth0", macA, addressA, addressB)
	if err != nil || arp.SenderMAC != macB {
		t.Fatalf("ARP: %+v, %v", arp, err)
	}
	if err := probe.Ping(ctx, a.NS, addressB); err != nil {
		t.Fatal(err)
	}
	port := netip.AddrPortFrom(addressB, 80)
	tcp, err := probe.ServeTCP(b.NS, port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tcp.Close() }()
	udp, err := probe.ServeUDP(b.NS, port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	seen, err := probe.AskTCP(ctx, a.NS, 5000, port)
	if err != nil || seen != netip.AddrPortFrom(addressA, 5000) {
		t.Errorf("TCP: seen as %s, %v", seen, err)
	}
	if err := probe.AskUDP(ctx, a.NS, 5000, port); err != nil || udp.Peers()[0] != netip.AddrPortFrom(addressA, 5000) {
		t.Errorf("UDP: seen as %v, %v", udp.Peers(), err)
	}
	stream, err := probe.StartUDP(a.NS, port, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for stream.Position() < 20 {
		time.Sleep(10 * time.Millisecond)
	}
	if r := stream.Stop(); len(r.Lost) > 0 || r.Sent < 20 || r.Err != nil {
		t.Errorf("UDP stream: %s", r)
	}
	frames, err := capture.Stop()
	if err != nil || len(frames) < 10 {
		t.Errorf("captured %d frames, %v", len(frames), err)
	}
	for _, f := range frames {
		if p, ok := probe.ParseARP(f.Packet()); ok && p.EthernetSource == macB {
			t.Errorf("captured an own frame: %s", f)
		}
	}
}

func TestStreamCountsWhatIsLost(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	l := harness.Lab(t)
	a, _ := twoHosts(ctx, t, l)
	stream, err := probe.StartPing(a.NS, netip.MustParseAddr("192.168.7.2"), 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for stream.Answered() < 5 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := l.Node("n").RemovePort(ctx, "tap-b"); err != nil {
		t.Fatal(err)
	}
	for end := stream.Position() + 20; stream.Position() < end; {
		time.Sleep(10 * time.Millisecond)
	}
	if r := stream.Stop(); len(r.Lost) < 15 {
		t.Errorf("a cut wire lost only %v of %d", r.Lost, r.Sent)
	}
}
