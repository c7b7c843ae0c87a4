package packets

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

// balancerWorld is a world whose VMs serve TCP port 80 and UDP port 53.
type balancerWorld struct {
	*world
	members []vm                      // in one network: on w1, w2 and w1
	other   vm                        // in another network, on w2
	inside  map[string]memberServices // by VM
}

type memberServices struct{ tcp, udp *probe.Service }

var (
	vmVD = vm{"vmd", "vlan1", "w1", vmDMAC, "192.168.11.14", "192.168.11.1"}

	flatMembers = []vm{vmA, vmB, vmD}
	vlanMembers = []vm{vmVA, vmVB, vmVD}

	firstFIP  = netip.MustParseAddr("172.16.0.150")
	secondFIP = netip.MustParseAddr("172.16.0.151")
)

// newBalancerWorld starts the services of a world's VMs.
func newBalancerWorld(w *world, members []vm, other vm) *balancerWorld {
	w.t.Helper()
	b := &balancerWorld{world: w, members: members, other: other, inside: map[string]memberServices{}}
	for _, v := range append(slices.Clone(members), other) {
		b.serveBalanced(v)
	}
	return b
}

func (w *balancerWorld) serveBalanced(v vm) {
	w.t.Helper()
	var s memberServices
	var err error
	ns, ip := w.Host(v.name).NS, netip.MustParseAddr(v.ip)
	if s.tcp, err = probe.ServeTCP(ns, netip.AddrPortFrom(ip, 80)); err != nil {
		w.t.Fatal(err)
	}
	if s.udp, err = probe.ServeUDP(ns, netip.AddrPortFrom(ip, 53)); err != nil {
		w.t.Fatal(err)
	}
	w.inside[v.name] = s
	w.t.Cleanup(func() {
		_ = s.tcp.Close()
		_ = s.udp.Close()
	})
}

// run runs a case in the world, after which nothing of balancers may be left on
// the switches.
func (w *balancerWorld) run(name string, test func(*balancerWorld)) {
	w.t.Run(name, func(t *testing.T) {
		sub := *w
		inner := *w.world
		inner.t, inner.Flat = t, w.Flat.In(t)
		sub.world = &inner
		t.Cleanup(sub.expectNothingLeft)
		test(&sub)
	})
}

// balancer is a balancer as the tests write it.
type balancer struct {
	name, network, vip string
	members            []string
	rules              []map[string]any
	description        string
}

func portRule(protocol string, port int) map[string]any {
	return map[string]any{"protocol": protocol, "portRangeMin": port, "portRangeMax": port}
}

// balancer is lb1 with the first members, or others.
func (w *balancerWorld) balancer(members ...vm) balancer {
	if members == nil {
		members = w.members[:2]
	}
	b := balancer{
		name: "lb1", network: w.members[0].network, vip: w.vip(250).String(),
		rules: []map[string]any{portRule("TCP", 80), portRule("UDP", 53), {"protocol": "ICMP"}},
	}
	b.setMembers(members...)
	return b
}

// second is lb2, with another VIP.
func (w *balancerWorld) second(members ...vm) balancer {
	b := w.balancer(members...)
	b.name, b.vip = "lb2", w.vip(251).String()
	return b
}

func (b *balancer) setMembers(members ...vm) {
	b.members = nil
	for _, v := range members {
		b.members = append(b.members, v.ip)
	}
}

// vip is an address of the members' network that no VM has.
func (w *balancerWorld) vip(last byte) netip.Addr {
	a := netip.MustParseAddr(w.members[0].ip).As4()
	a[3] = last
	return netip.AddrFrom4(a)
}

func (b balancer) body() map[string]any {
	return map[string]any{
		"name": b.name, "vip": b.vip, "networkId": b.network, "members": b.members, "rules": b.rules, "description": b.description,
	}
}

func (w *balancerWorld) create(b balancer) {
	w.t.Helper()
	w.t.Cleanup(func() { w.remove("loadbalancer", b.name) })
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", b.body())
}

func (w *balancerWorld) update(b balancer) {
	w.t.Helper()
	w.Must(w.ctx, http.MethodPut, server.ObjectPath("loadbalancer", b.name), b.body())
}

func (w *balancerWorld) delete(kind, key string) {
	w.t.Helper()
	w.Must(w.ctx, http.MethodDelete, server.ObjectPath(kind, key), nil)
}

// remove deletes what a test may have deleted already.
func (w *balancerWorld) remove(kind, key string) {
	w.t.Helper()
	status, answer, err := w.Do(w.ctx, http.MethodDelete, server.ObjectPath(kind, key), nil)
	if err != nil || status != http.StatusNoContent && status != http.StatusNotFound {
		w.t.Errorf("delete %s %s: %d %s, %v", kind, key, status, answer, err)
	}
}

func floatingIP(id, router string, address netip.Addr, vip string) map[string]any {
	return map[string]any{"id": id, "routerName": router, "networkName": "ext-net", "floatingIp": address.String(), "fixedIp": vip}
}

// bind creates a floating IP of r1 with a balancer's VIP.
func (w *balancerWorld) bind(id string, address netip.Addr, vip string) {
	w.t.Helper()
	w.bindOf("r1", id, address, vip)
}

func (w *balancerWorld) bindOf(router, id string, address netip.Addr, vip string) {
	w.t.Helper()
	w.t.Cleanup(func() { w.remove("floating-ip", id) })
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/floating-ip", floatingIP(id, router, address, vip))
}

// serveFirst creates a balancer with the first floating IP and waits for both.
func (w *balancerWorld) serveFirst(b balancer) {
	w.t.Helper()
	w.create(b)
	w.bind("f1", firstFIP, b.vip)
	w.waitGroups(gw1, b.members)
	w.waitFloating(gw1, firstFIP)
}

// waitGroups waits until a gateway has exactly the groups that lead to these
// addresses.
func (w *balancerWorld) waitGroups(gateway string, want ...[]string) {
	w.t.Helper()
	texts := make([]string, 0, len(want))
	for _, members := range want {
		members = slices.Clone(members)
		slices.Sort(members)
		texts = append(texts, strings.Join(members, " "))
	}
	slices.Sort(texts)
	harness.Eventually(w.t, soon, "groups of "+gateway, func() error {
		var got []string
		for _, g := range w.groups(gateway) {
			got = append(got, strings.Join(g.Targets(), " "))
		}
		slices.Sort(got)
		if !slices.Equal(got, texts) {
			return fmt.Errorf("they lead to %q, want %q", got, texts)
		}
		return nil
	})
}

func (w *balancerWorld) groups(gateway string) []ovs.Group {
	w.t.Helper()
	groups, err := w.Node(gateway).Groups(w.ctx, lab.BrInt)
	if err != nil {
		w.t.Fatal(err)
	}
	return groups
}

// waitFloating waits until a gateway answers for a floating IP and leads it on.
func (w *balancerWorld) waitFloating(gateway string, address netip.Addr) {
	w.t.Helper()
	w.waitRulesOn(gateway, "rules of "+address.String(), func(rules []ovs.Flow) error {
		for _, part := range []string{"arp_tpa=" + address.String(), "nw_dst=" + address.String(), "set_field:" + address.String() + "->ip_src"} {
			if !slices.ContainsFunc(rules, func(f ovs.Flow) bool { return strings.Contains(f.String(), part) }) {
				return fmt.Errorf("no rule with %s", part)
			}
		}
		return nil
	})
}

// ofBalancer recognises the rules of balancers and those that answer for them.
func ofBalancer(f ovs.Flow) bool {
	for _, a := range []netip.Addr{firstFIP, secondFIP} {
		if f.Has("arp_tpa=" + a.String()) {
			return true
		}
	}
	for _, vip := range []string{".250", ".251"} {
		if tpa, ok := f.Field("arp_tpa"); ok && strings.HasSuffix(tpa, vip) {
			return true
		}
	}
	return slices.Contains([]int{41500, 41501, 40400}, f.Priority)
}

// expectNothingLeft checks that no switch has a rule or group of a balancer.
func (w *balancerWorld) expectNothingLeft() {
	w.t.Helper()
	for _, gateway := range w.Gateways {
		w.expectNothingOn(gateway)
	}
	flows, _, err := w.Flows(w.ctx, "", "lb")
	if err != nil || len(flows) > 0 {
		w.t.Errorf("/kvnet/v1/flows still shows %v, %v", flows, err)
	}
}

func (w *balancerWorld) expectNothingOn(gateway string) {
	w.t.Helper()
	w.waitGroups(gateway)
	w.waitRulesOn(gateway, "no rule of a balancer", noRule(ofBalancer))
}

// many connections make chance small: with two members and no fault, less than a
// quarter at one of them is out of the question.
const many = 160

// ask makes TCP connections, each of which must be answered by a member that sees
// the client's own address, and tells how many each VM got.
func (w *balancerWorld) ask(n int, from *lab.Host, client netip.Addr, service netip.AddrPort) map[string]int {
	w.t.Helper()
	before := w.counts()
	for i := range n {
		seen, err := probe.AskTCP(w.within(soon), from.NS, 0, service)
		if err != nil || seen.Addr() != client {
			w.t.Fatalf("connection %d of %d to %s: seen as %s, %v, want %s", i+1, n, service, seen, err, client)
		}
	}
	return w.since(before)
}

// askOutside is ask from outside.
func (w *balancerWorld) askOutside(n int, address netip.Addr) map[string]int {
	w.t.Helper()
	return w.ask(n, w.ext, peerIP, netip.AddrPortFrom(address, 80))
}

func (w *balancerWorld) counts() map[string]int {
	counts := map[string]int{}
	for name, s := range w.inside {
		counts[name] = len(s.tcp.Peers()) + len(s.udp.Peers())
	}
	return counts
}

func (w *balancerWorld) since(before map[string]int) map[string]int {
	got := map[string]int{}
	for name, n := range w.counts() {
		if n > before[name] {
			got[name] = n - before[name]
		}
	}
	return got
}

// expectSpread checks that the members and no others got connections, each at
// least least of them.
func (w *balancerWorld) expectSpread(got map[string]int, least int, members ...vm) {
	w.t.Helper()
	for _, v := range members {
		if got[v.name] < least {
			w.t.Errorf("%s got %d connections, want at least %d: %v", v.name, got[v.name], least, got)
		}
	}
	if len(got) != len(members) {
		w.t.Errorf("connections went to %v, want %d members", got, len(members))
	}
}

// expectSilence checks that nothing answers a connection from outside.
func (w *balancerWorld) expectSilence(service netip.AddrPort) {
	w.t.Helper()
	if seen, err := probe.AskTCP(w.within(never/2), w.ext.NS, 0, service); err == nil {
		w.t.Errorf("%s answers, it sees %s", service, seen)
	}
}

// expectNoARP checks that nobody answers for an address outside.
func (w *balancerWorld) expectNoARP(address netip.Addr) {
	w.t.Helper()
	if reply, err := probe.RequestARP(w.within(never/2), w.ext.NS, "eth0", peerMAC, peerIP, address); err == nil {
		w.t.Errorf("%s is still at %s", address, reply.SenderMAC)
	}
}
