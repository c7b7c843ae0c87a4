package packets

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

// The cases LB-1 to LB-15 and what belongs to them, each in FLAT networks and, with
// tags inside and outside, in VLAN networks.
func TestLB(t *testing.T) {
	for name, c := range map[string]struct {
		config   lab.FlatConfig
		internal []network
		members  []vm
		other    vm
	}{
		"FLAT": {lab.FlatConfig{Workers: 2, ControlledPhysical: true}, []network{{id: "flat1", subnet: "192.168.10"}, {id: "flat2", subnet: "192.168.20"}}, flatMembers, vmC},
		"VLAN": {lab.FlatConfig{Workers: 2, ExternalVLAN: externalVLAN}, []network{vlan1, vlan2}, vlanMembers, vmVC},
	} {
		t.Run(name, func(t *testing.T) {
			plain := newWorldOf(t, c.config, harness.Options{}, c.internal...)
			plain.connect(append(c.members[:len(c.members):len(c.members)], c.other)...)
			w := newBalancerWorld(plain, c.members, c.other)
			w.run("LB-1", (*balancerWorld).lb1)
			w.run("LB-2", (*balancerWorld).lb2)
			w.run("LB-3", (*balancerWorld).lb3)
			w.run("LB-4", (*balancerWorld).lb4)
			w.run("LB-5", (*balancerWorld).lb5)
			w.run("LB-6", (*balancerWorld).lb6)
			w.run("LB-7", (*balancerWorld).lb7)
			w.run("LB-8", (*balancerWorld).lb8)
			w.run("LB-9", (*balancerWorld).lb9)
			w.run("LB-10", (*balancerWorld).lb10)
			w.run("LB-12", (*balancerWorld).lb12)
			w.run("LB-13", (*balancerWorld).lb13)
			w.run("LB-14", (*balancerWorld).lb14)
			w.run("LB-15", (*balancerWorld).lb15)
			w.run("floating IP that is bound before and after", (*balancerWorld).boundBeforeAndAfter)
			w.run("floating IP that is deleted while it is bound", (*balancerWorld).deletedWhileBound)
			w.run("floating IP that moves between balancers", (*balancerWorld).movesBetweenBalancers)
			w.run("two floating IPs of one VIP", (*balancerWorld).twoFloatingIPs)
			w.run("two balancers that share a member and a port", (*balancerWorld).sharedMember)
			w.run("updates under traffic", (*balancerWorld).updatesUnderTraffic)
			w.run("networks that come and go under traffic", (*balancerWorld).networksUnderTraffic)
			w.run("members that come and go under traffic", (*balancerWorld).membersUnderTraffic)
			w.run("group that was edited by hand", (*balancerWorld).editedGroup)
		})
	}
}

// Connections from outside to the floating IP spread over the members, which see
// the client's address.
func (w *balancerWorld) lb1() {
	w.serveFirst(w.balancer())
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
	if reply, err := probe.RequestARP(w.within(soon), w.ext.NS, "eth0", peerMAC, peerIP, firstFIP); err != nil || reply.SenderMAC != outside {
		w.t.Errorf("the floating IP is at %+v, %v, want %s", reply, err, outside)
	}
}

// Datagrams spread by the clients' addresses: the switch leaves the ports of UDP
// out of its hash.
func (w *balancerWorld) lb2() {
	w.serveFirst(w.balancer())
	before := w.counts()
	for i := range 40 {
		client := netip.AddrFrom4([4]byte{172, 16, 0, byte(20 + i)})
		if err := w.ext.IP(w.ctx, "addr", "add", client.String()+"/32", "dev", "lo"); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			if err := w.ext.IP(context.Background(), "addr", "del", client.String()+"/32", "dev", "lo"); err != nil {
				w.t.Error(err)
			}
		})
		if err := probe.AskUDPFrom(w.within(soon), w.ext.NS, client, netip.AddrPortFrom(firstFIP, 53)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.expectSpread(w.since(before), 5, w.members[:2]...)
}

// Pings of the floating IP are answered from it.
func (w *balancerWorld) lb3() {
	w.serveFirst(w.balancer())
	if err := probe.Ping(w.within(soon), w.ext.NS, firstFIP); err != nil {
		w.t.Error(err)
	}
}

// A connection stays with its member.
func (w *balancerWorld) lb4() {
	w.serveFirst(w.balancer())
	c := w.open(firstFIP)
	for i := range 50 {
		if err := c.Echo(fmt.Sprint("message ", i), soon); err != nil {
			w.t.Fatal(err)
		}
	}
	id := w.groups(gw1)[0].ID
	var counts []uint64
	harness.Eventually(w.t, soon, "a bucket counts the connection", func() (err error) {
		if counts, err = w.Node(gw1).BucketPackets(w.ctx, lab.BrInt, id); err == nil && sum(counts) < 50 {
			err = fmt.Errorf("the buckets have %v packets", counts)
		}
		return err
	})
	if len(counts) != 2 || counts[0] != 0 && counts[1] != 0 {
		w.t.Errorf("the buckets have %v packets, want them in one", counts)
	}
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// open makes a connection from outside that lasts.
func (w *balancerWorld) open(address netip.Addr) *probe.Connection {
	w.t.Helper()
	c, err := probe.OpenTCP(w.within(soon), w.ext.NS, netip.AddrPortFrom(address, 80))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// A port that is not balanced is silent.
func (w *balancerWorld) lb5() {
	w.serveFirst(w.balancer())
	capture := w.capture(w.ext)
	w.expectSilence(netip.AddrPortFrom(firstFIP, 81))
	if frames := capture.Matching(anyIPv4); len(frames) > 0 {
		w.t.Errorf("something answered:\n%s", describe(frames))
	}
}

// A member that is added gets connections, one that is removed gets none, and
// the rules and buckets are exactly those of the members.
func (w *balancerWorld) lb6() {
	b := w.balancer()
	w.serveFirst(b)
	for _, members := range [][]vm{w.members, w.members[1:]} {
		b.setMembers(members...)
		w.update(b)
		w.waitGroups(gw1, b.members)
		w.waitRules("the members' rules", func(rules []ovs.Flow) error {
			n := 0
			for _, f := range rules {
				if ip, ok := f.Field("nw_src"); ok && f.Table == 31 && f.Priority == 41500 {
					if !slices.Contains(b.members, ip) {
						return fmt.Errorf("a rule of %s", ip)
					}
					n++
				}
			}
			if n != len(b.members)*len(b.rules) {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
		w.expectSpread(w.askOutside(many, firstFIP), many/10, members...)
	}
}

// A member whose port comes after the balancer is included.
func (w *balancerWorld) lb7() {
	late := w.members[2]
	w.delete("port", late.mac)
	w.create(w.balancer(w.members...))
	w.bind("f1", firstFIP, w.balancer().vip)
	w.waitGroups(gw1, w.balancer().members)
	w.writePort(http.MethodPost, server.NetworkingPath+"/port", late, lab.BridgeDPID(late.worker, lab.BrInt).String())
	w.waitGroups(gw1, w.balancer(w.members...).members)
	w.waitFloating(gw1, firstFIP)
	w.expectSpread(w.askOutside(many, firstFIP), many/10, w.members...)
}

func (w *balancerWorld) writePort(method, path string, v vm, device string) {
	w.t.Helper()
	w.Must(w.ctx, method, path, map[string]any{
		"vmName": v.name, "networkId": v.network, "macAddress": v.mac, "ipAddress": v.ip, "deviceId": device,
	})
}

// Equal updates lose no packet. A balancer that is deleted and made again at once
// serves again when the second call is answered, with one group.
func (w *balancerWorld) lb8() {
	b := w.balancer()
	w.serveFirst(b)
	traffic := w.startOutside()
	for range 20 {
		w.update(b)
	}
	traffic.expectNoLoss(w.t)

	w.delete("loadbalancer", b.name)
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", b.body())
	w.expectBack()
	w.startOutside().expectNoLoss(w.t)
	w.waitGroups(gw1, b.members)
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
}

// expectBack has the first floating IP pinged each millisecond. The balancer's
// rules may be a moment behind the answer to its write, but from the first answered
// ping on none may be lost.
func (w *balancerWorld) expectBack() {
	w.t.Helper()
	ping, err := probe.StartPing(w.ext.NS, firstFIP, time.Millisecond)
	if err != nil {
		w.t.Fatal(err)
	}
	harness.Eventually(w.t, soon, "pings are answered", func() error {
		if ping.Answered() < 50 {
			return fmt.Errorf("%d", ping.Answered())
		}
		return nil
	})
	r := ping.Stop()
	behind := 0
	for behind < len(r.Lost) && r.Lost[behind] == behind {
		behind++
	}
	w.t.Logf("the balancer was back %d ms after the second answer", behind)
	if behind != len(r.Lost) || behind > 500 {
		w.t.Errorf("%s", r)
	}
}

// startOutside starts traffic from outside to the first floating IP.
func (w *balancerWorld) startOutside() traffic {
	w.t.Helper()
	// A new rule is in force when ovs-vswitchd has looked through what it keeps of the
	// old ones for packets that passed before, which may be after it shows the rule.
	if err := probe.Ping(w.within(soon), w.ext.NS, firstFIP); err != nil {
		w.t.Fatal(err)
	}
	if err := probe.AskUDP(w.within(soon), w.ext.NS, 0, netip.AddrPortFrom(firstFIP, 53)); err != nil {
		w.t.Fatal(err)
	}
	ping, err := probe.StartPing(w.ext.NS, firstFIP, pulse)
	if err != nil {
		w.t.Fatal(err)
	}
	udp, err := probe.StartUDP(w.ext.NS, netip.AddrPortFrom(firstFIP, 53), pulse)
	if err != nil {
		w.t.Fatal(err)
	}
	x := traffic{ping, udp}
	harness.Eventually(w.t, soon, "traffic flows", func() error {
		if ping.Answered() < 10 || udp.Answered() < 10 {
			return fmt.Errorf("%d pings and %d datagrams are answered", ping.Answered(), udp.Answered())
		}
		return nil
	})
	return x
}

// A balancer that is deleted takes the rules of its floating IP along.
func (w *balancerWorld) lb9() {
	w.serveFirst(w.balancer())
	w.delete("loadbalancer", "lb1")
	w.expectNothingLeft()
	w.expectNoARP(firstFIP)
	w.expectSilence(netip.AddrPortFrom(firstFIP, 80))
}

// A rule with another protocol does nothing, least of all to what isn't for the
// balancer.
func (w *balancerWorld) lb10() {
	b := w.balancer()
	b.rules = []map[string]any{{"protocol": "SCTP"}, {"protocol": ""}}
	w.create(b)
	w.bind("f1", firstFIP, b.vip)
	w.waitGroups(gw1, b.members)
	w.waitFloating(gw1, firstFIP)
	w.expectOutside(w.members[1])
	_, waiting, err := w.Flows(w.ctx, "", "lb/lb1")
	if err != nil || len(waiting) != 2 {
		w.t.Errorf("it waits for %v, %v, want a line for each protocol", waiting, err)
	}
}

// A new start of the server changes nothing of a balancer, the group's id least
// of all; what the new server deletes is gone.
func (w *balancerWorld) lb12() {
	w.serveFirst(w.balancer())
	id := w.groups(gw1)[0].ID
	w.restart(w.t, func() { w.letIn(w.names()...) }, time.Second)
	if g := w.groups(gw1); len(g) != 1 || g[0].ID != id {
		w.t.Errorf("the groups are %v, want the one with id %s", g, id)
	}
	w.expectSpread(w.askOutside(40, firstFIP), 4, w.members[:2]...)
	w.delete("loadbalancer", "lb1")
	w.expectNothingLeft()
}

// A member's port whose node is not known leaves the others as they are.
func (w *balancerWorld) lb13() {
	lost := w.members[2]
	path := server.ObjectPath("port", lost.mac)
	w.writePort(http.MethodPut, path, lost, "of:00000000000000ff")
	w.t.Cleanup(func() { w.writePort(http.MethodPut, path, lost, lab.BridgeDPID(lost.worker, lab.BrInt).String()) })
	b := w.balancer(w.members...)
	w.serveFirst(b)
	// Where provider networks lead, no node has to be known.
	w.expectSpread(w.askOutside(many, firstFIP), many/10, w.members...)
}

// The balancer may come before its router and before its network is behind one.
func (w *balancerWorld) lb14() {
	b := w.balancer()
	w.delete("router", "r1")
	w.create(b)
	w.createRouter()
	w.bind("f1", firstFIP, b.vip)
	w.waitGroups(gw1, b.members)
	w.waitFloating(gw1, firstFIP)
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)

	internal := w.router["internal"]
	w.updateRouter(map[string]any{"internal": []string{w.other.network}})
	w.expectNothingLeft()
	w.updateRouter(map[string]any{"internal": internal})
	w.waitGroups(gw1, b.members)
	w.waitFloating(gw1, firstFIP)
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
	w.waitSNAT(snatIP)
}

// Balancers of two routers on one gateway have one VIP: each floating IP leads to
// its own router's members.
func (w *balancerWorld) lb15() {
	internal := w.router["internal"]
	w.updateRouter(map[string]any{"internal": []string{w.members[0].network}})
	w.secondRouter(gw1, w.other.network)
	w.t.Cleanup(func() {
		w.remove("floating-ip", "f2")
		w.remove("router", "r2")
		w.updateRouter(map[string]any{"internal": internal})
		w.expectOutside(w.other)
	})
	w.serveFirst(w.balancer())
	b := w.second(w.other)
	b.vip, b.network = w.balancer().vip, w.other.network
	w.create(b)
	w.bindOf("r2", "f2", secondFIP, b.vip)
	w.waitGroups(gw1, w.balancer().members, b.members)
	w.waitFloating(gw1, secondFIP)
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
	w.expectSpread(w.askOutside(10, secondFIP), 10, w.other)

	// FLAT networks without an interface of their own look the same, so only one of
	// the two VIPs is answered inside: the loser shows, and heals.
	losers := 1
	if w.vlans[b.network] != 0 {
		losers = 0
	}
	w.expectConflicts("lb/lb1", 0)
	w.expectConflicts("lb/lb2", losers)
	w.delete("loadbalancer", "lb1")
	w.expectConflicts("lb/lb2", 0)
	reply, err := probe.RequestARP(w.within(soon), w.Host(w.other.name).NS, "eth0", mustMAC(w.other.mac), netip.MustParseAddr(w.other.ip), netip.MustParseAddr(b.vip))
	if err != nil || reply.SenderMAC != mustMAC(secondRouterMAC) {
		w.t.Errorf("the VIP is at %+v, %v, want %s", reply, err, secondRouterMAC)
	}
}

const secondRouterMAC = "fa:00:00:00:00:0b"

// secondRouter creates r2.
func (w *balancerWorld) secondRouter(gateway string, internal ...string) {
	w.t.Helper()
	w.t.Cleanup(func() { w.remove("router", "r2") })
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/router", map[string]any{
		"name": "r2", "mac": secondRouterMAC, "enableSnat": false, "internal": internal, "gateway": gateway,
		"external":   map[string]any{"ip": "172.16.0.102", "network": "ext-net"},
		"peerRouter": map[string]any{"ip": lab.PeerIP},
	})
	harness.Eventually(w.t, soon, "r2 knows its peer", func() error {
		r, err := w.Router(w.ctx, "r2")
		if err == nil && (!sameMAC(r.Peer.MAC, lab.PeerMAC) || r.Gateway != gateway) {
			err = fmt.Errorf("its peer is %q, its gateway %q", r.Peer.MAC, r.Gateway)
		}
		return err
	})
}
