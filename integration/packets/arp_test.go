package packets

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/probe"
	"kvnet/integration/server"
	"kvnet/model"
)

// silenceExternal makes the upstream router answer no ARP.
func (w *world) silenceExternal() {
	w.t.Helper()
	if err := w.ext.IP(w.ctx, "link", "set", "eth0", "arp", "off"); err != nil {
		w.t.Fatal(err)
	}
}

// asksForPeer accepts the question for the upstream router's MAC.
func asksForPeer(p gopacket.Packet) bool {
	a, ok := probe.ParseARP(p)
	return ok && !a.Reply && a.TargetIP == peerIP
}

// The upstream router is asked for its MAC at once and again after 5 s; with its
// answer the rules come and the questions end.
func TestARP1(t *testing.T) {
	w := newWorld(t, lab.FlatConfig{Workers: 1, ControlledPhysical: true}, harness.Options{})
	w.silenceExternal()
	capture := w.capture(w.ext)
	w.createRouter()
	frames, err := capture.Wait(w.within(soon), 1, asksForPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := probe.ParseARP(frames[0].Packet())
	want := probe.ARP{
		SenderMAC: outside, SenderIP: snatIP, TargetIP: peerIP,
		EthernetSource: outside, EthernetTarget: broadcast, Length: 60, HardwareAndLengths: true,
	}
	if a != want {
		t.Errorf("asked %+v\nwant  %+v", a, want)
	}
	frames, err = capture.Wait(w.within(8*time.Second), 2, asksForPeer)
	if err != nil {
		t.Fatal(err)
	}
	if after := frames[1].Time.Sub(frames[0].Time); after < 4*time.Second || after > 7*time.Second {
		t.Errorf("asked again after %s, want 5 s", after)
	}
	if rules := w.flows(lab.Gateway, lab.BrInt); noRule(isSNAT)(rules) != nil {
		t.Errorf("SNAT rules though the peer's MAC is unknown: %v", rules)
	}

	if err := probe.SendARPReply(w.ext.NS, "eth0", peerMAC, peerIP, outside, snatIP); err != nil {
		t.Fatal(err)
	}
	w.waitSNAT(snatIP)
	harness.Eventually(t, soon, "the router shows the MAC", func() error {
		r, err := w.Router(w.ctx, "r1")
		if err == nil && !sameMAC(r.Peer.MAC, lab.PeerMAC) {
			err = fmt.Errorf("it is %q", r.Peer.MAC)
		}
		return err
	})
	known := len(capture.Matching(asksForPeer))
	watch(6 * time.Second)
	if n := len(capture.Matching(asksForPeer)); n != known {
		t.Errorf("asked %d times more though the MAC is known", n-known)
	}
}

// Nobody asks for a router that was deleted.
func TestARP2(t *testing.T) {
	w := newWorld(t, lab.FlatConfig{Workers: 1, ControlledPhysical: true}, harness.Options{})
	w.silenceExternal()
	capture := w.capture(w.ext)
	w.createRouter()
	if _, err := capture.Wait(w.within(soon), 1, asksForPeer); err != nil {
		t.Fatal(err)
	}
	w.Must(w.ctx, http.MethodDelete, server.ObjectPath("router", "r1"), nil)
	known := len(capture.Matching(asksForPeer))
	watch(7 * time.Second)
	if n := len(capture.Matching(asksForPeer)); n != known {
		t.Errorf("asked %d times more for a router that is gone", n-known)
	}
}

// The upstream router's new MAC is followed when it announces itself; an
// announcement that it does not confirm itself is not believed, nor an answer of
// another machine.
func TestPeerThatAnnouncesAnotherMACIsFollowed(t *testing.T) {
	w := newSNATWorld(t, vmA)
	moved := mustMAC("52:54:00:aa:bb:02")
	for name, forged := range map[string]struct{ sender, target netip.Addr }{
		"answer of another machine": {netip.MustParseAddr("172.16.0.9"), snatIP},
		"announcement":              {peerIP, peerIP},
		"answer nobody asked for":   {peerIP, snatIP},
	} {
		if err := probe.SendARPReply(w.ext.NS, "eth0", moved, forged.sender, outside, forged.target); err != nil {
			t.Fatal(err)
		}
		watch(never / 3)
		if r, err := w.Router(w.ctx, "r1"); err != nil || !sameMAC(r.Peer.MAC, lab.PeerMAC) {
			t.Errorf("%s: the peer is at %s, %v", name, r.Peer.MAC, err)
		}
	}

	if err := w.ext.IP(w.ctx, "link", "set", "eth0", "address", moved.String()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 15*time.Second, "the router shows the new MAC", func() error {
		// A router that moves announces itself more than once.
		if err := probe.SendARPReply(w.ext.NS, "eth0", moved, peerIP, broadcast, peerIP); err != nil {
			return err
		}
		watch(never / 3)
		r, err := w.Router(w.ctx, "r1")
		if err == nil && !sameMAC(r.Peer.MAC, moved.String()) {
			err = fmt.Errorf("it is %q", r.Peer.MAC)
		}
		return err
	})
	if err := probe.Ping(w.within(soon), w.Host(vmA.name).NS, internet); err != nil {
		t.Error(err)
	}
}

func sameMAC(a, b string) bool {
	x, err := model.ParseMAC(a)
	y, err2 := model.ParseMAC(b)
	return err == nil && err2 == nil && x == y
}
