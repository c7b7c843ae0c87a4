package packets

import (
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

// updating is how long a balancer is updated under traffic.
var updating = flag.Duration("updating", 5*time.Second, "how long a balancer is updated 100 times a second under traffic")

// A floating IP that was bound before its balancer was made works, and one that
// is bound after it.
func (w *balancerWorld) boundBeforeAndAfter() {
	b := w.balancer()
	w.bind("f1", firstFIP, b.vip)
	w.expectNoARP(firstFIP)
	w.create(b)
	w.waitFloating(gw1, firstFIP)
	w.expectSpread(w.askOutside(40, firstFIP), 4, w.members[:2]...)
	w.delete("floating-ip", "f1")
	w.bind("f2", secondFIP, b.vip)
	w.waitFloating(gw1, secondFIP)
	w.expectSpread(w.askOutside(40, secondFIP), 4, w.members[:2]...)
}

// A floating IP that is deleted while it is bound is dead, and the balancer stays.
func (w *balancerWorld) deletedWhileBound() {
	b := w.balancer()
	w.serveFirst(b)
	w.delete("floating-ip", "f1")
	w.waitRules("no rule of the floating IP", noRule(func(f ovs.Flow) bool {
		return strings.Contains(f.String(), firstFIP.String())
	}))
	w.expectNoARP(firstFIP)
	w.expectSilence(netip.AddrPortFrom(firstFIP, 80))
	w.waitGroups(gw1, b.members)
	w.bind("f2", secondFIP, b.vip)
	w.waitFloating(gw1, secondFIP)
	w.expectSpread(w.askOutside(40, secondFIP), 4, w.members[:2]...)
}

// A floating IP that is bound to another balancer leads there.
func (w *balancerWorld) movesBetweenBalancers() {
	first, second := w.balancer(w.members[0]), w.second(w.members[1])
	w.serveFirst(first)
	w.create(second)
	w.waitGroups(gw1, first.members, second.members)
	for _, b := range []struct {
		to      balancer
		members []vm
	}{{first, w.members[:1]}, {second, w.members[1:2]}, {first, w.members[:1]}} {
		w.Must(w.ctx, http.MethodPut, server.ObjectPath("floating-ip", "f1"), floatingIP("f1", "r1", firstFIP, b.to.vip))
		w.waitRules("the floating IP leads to "+b.to.name, leadsTo(firstFIP, b.to.vip))
		w.expectSpread(w.askOutside(10, firstFIP), 10, b.members...)
	}
}

// Of two floating IPs of one VIP the first serves; the other one waits, isn't
// answered for, and serves when the first is released.
func (w *balancerWorld) twoFloatingIPs() {
	b := w.balancer()
	w.create(b)
	w.bind("f2", secondFIP, b.vip)
	w.waitFloating(gw1, secondFIP)
	w.expectSpread(w.askOutside(40, secondFIP), 4, w.members[:2]...)
	w.bind("f1", firstFIP, b.vip)
	w.waitFloating(gw1, firstFIP)
	w.expectSpread(w.askOutside(40, firstFIP), 4, w.members[:2]...)
	w.expectNoARP(secondFIP)
	flows, waiting, err := w.Flows(w.ctx, "", "lb/lb1/fip/f2")
	if err != nil || len(flows) != 0 || len(waiting) != 1 || !strings.Contains(waiting[0].For, firstFIP.String()) {
		w.t.Errorf("the second floating IP has %v and waits for %v, %v", flows, waiting, err)
	}
	released := floatingIP("f1", "r1", firstFIP, "")
	delete(released, "fixedIp")
	w.Must(w.ctx, http.MethodPut, server.ObjectPath("floating-ip", "f1"), released)
	w.waitFloating(gw1, secondFIP)
	w.expectSpread(w.askOutside(40, secondFIP), 4, w.members[:2]...)
}

// What leaves with a floating IP has another priority while its router has several
// networks. The rule is exchanged without a loss.
func (w *balancerWorld) networksUnderTraffic() {
	b := w.balancer()
	w.serveFirst(b)
	several := w.router["internal"]
	leaveAt := func(priority int) {
		w.t.Helper()
		w.waitRules(fmt.Sprintf("the way out at priority %d", priority), func(rules []ovs.Flow) error {
			i := slices.IndexFunc(rules, func(f ovs.Flow) bool { return f.Table == 32 && f.Has("nw_src="+b.vip) })
			if i < 0 || rules[i].Priority != priority {
				return fmt.Errorf("the rules are %v", rules)
			}
			return nil
		})
	}
	leaveAt(40400)
	traffic := w.startOutside()
	for range 3 {
		w.updateRouter(map[string]any{"internal": []string{b.network}})
		leaveAt(41500)
		w.updateRouter(map[string]any{"internal": several})
		leaveAt(40400)
	}
	traffic.expectNoLoss(w.t)
}

// leadsTo accepts the rules in which a floating IP leads to a VIP and to nothing
// else.
func leadsTo(address netip.Addr, vip string) func([]ovs.Flow) error {
	return func(rules []ovs.Flow) error {
		found := false
		for _, f := range rules {
			if to, ok := f.Field("nw_dst"); !ok || to != address.String() {
				continue
			}
			if !strings.Contains(f.Actions, "set_field:"+vip+"->ip_dst") {
				return fmt.Errorf("there is %s", f)
			}
			found = true
		}
		if !found {
			return fmt.Errorf("no rule for %s", address)
		}
		return nil
	}
}

// Two balancers share a member and a port. Each works alone. Together the first by
// name is served, the conflict shows, and removing either leaves the other whole.
func (w *balancerWorld) sharedMember() {
	first, second := w.balancer(), w.second(w.members[0])
	serve := func(b balancer, id string, address netip.Addr) {
		w.t.Helper()
		w.create(b)
		w.bind(id, address, b.vip)
		w.waitFloating(gw1, address)
	}
	serve(second, "f2", secondFIP)
	w.expectSpread(w.askOutside(10, secondFIP), 10, w.members[0])
	w.expectConflicts("lb/lb2", 0)

	serve(first, "f1", firstFIP)
	w.waitGroups(gw1, first.members, second.members)
	w.expectConflicts("lb/lb1", 0)
	w.expectConflicts("lb/lb2", len(second.rules))
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)

	w.delete("loadbalancer", "lb1")
	w.waitGroups(gw1, second.members)
	w.expectConflicts("lb/lb2", 0)
	w.expectSpread(w.askOutside(10, secondFIP), 10, w.members[0])

	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", first.body())
	w.waitGroups(gw1, first.members, second.members)
	w.expectConflicts("lb/lb2", len(second.rules))
	w.delete("loadbalancer", "lb2")
	w.waitGroups(gw1, first.members)
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
}

// expectConflicts waits until n rules of an owner have lost against another's and
// all the others are installed.
func (w *balancerWorld) expectConflicts(owner string, n int) {
	w.t.Helper()
	harness.Eventually(w.t, soon, fmt.Sprintf("%d conflicts of %s", n, owner), func() error {
		flows, _, err := w.Flows(w.ctx, "", owner)
		if err != nil {
			return err
		}
		states := map[string]int{}
		for _, f := range flows {
			states[f.State]++
		}
		if states["conflict"] != n || states["installed"] != len(flows)-n || len(flows) == 0 {
			return fmt.Errorf("its rules are %v", states)
		}
		return nil
	})
}

// A balancer is updated 100 times a second and serves all the time: equal objects,
// other texts and other ports cost no packet.
func (w *balancerWorld) updatesUnderTraffic() {
	w.serveFirst(w.balancer())
	traffic := w.startOutside()
	w.updateEach10ms(*updating, func(b *balancer, i int) {
		b.description = fmt.Sprint(i / 2)
		if i%4 >= 2 {
			b.rules = append(b.rules, portRule("TCP", 8080))
		}
		if i%50 == 0 {
			w.askOutside(1, firstFIP)
		}
	})
	traffic.expectNoLoss(w.t)
}

// Members that come and go 100 times a second leave no gap. Only a question that
// is at a member while it is removed may stay without answer. TCP connections may
// break, as the hash leads some to another member each time (L-20).
func (w *balancerWorld) membersUnderTraffic() {
	w.serveFirst(w.balancer())
	traffic := w.startOutside()
	w.updateEach10ms(*updating/2, func(b *balancer, i int) {
		if i%4 >= 2 {
			b.setMembers(w.members...)
		}
	})
	for name, stream := range map[string]*probe.Stream{"ping": traffic.ping, "UDP": traffic.udp} {
		r := stream.Stop()
		w.t.Logf("%s: %s", name, r)
		if r.LongestGap > gapOfMembers || r.Err != nil {
			w.t.Errorf("%s: %s", name, r)
		}
	}
}

// gapOfMembers is the longest time between two answers while members come and go.
const gapOfMembers = 500 * time.Millisecond

// updateEach10ms writes the i-th form of the balancer each 10 ms, and at last the
// balancer as it was.
func (w *balancerWorld) updateEach10ms(long time.Duration, change func(b *balancer, i int)) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, writes := time.Now(), 0
	for ; time.Since(began) < long; writes++ {
		b := w.balancer()
		change(&b, writes)
		w.update(b)
		<-tick.C
	}
	w.t.Logf("%d updates in %s", writes, time.Since(began).Round(time.Millisecond))
	b := w.balancer()
	w.update(b)
	w.waitGroups(gw1, b.members)
	w.expectSpread(w.askOutside(many, firstFIP), many/4, w.members[:2]...)
}

// Groups that were changed or deleted by hand come back, with the rules that lead
// to them (the rest of REC-1).
func (w *balancerWorld) editedGroup() {
	b := w.balancer()
	w.serveFirst(b)
	rules, groups := w.flows(gw1, lab.BrInt), w.groups(gw1)
	id := groups[0].ID
	for name, edit := range map[string][]string{
		"other buckets": {"mod-group", "group_id=" + id + ",type=select,bucket=weight:1,actions=drop"},
		"no buckets":    {"mod-group", "group_id=" + id + ",type=select"},
		"deleted":       {"del-groups", "group_id=" + id},
		"all deleted":   {"del-groups"},
	} {
		w.ofctl(nil, edit[0], edit[1:]...)
		began := time.Now()
		harness.Eventually(w.t, fullAuditInterval+2*auditInterval, "a group heals: "+name, func() error {
			now := w.groups(gw1)
			if !slices.EqualFunc(now, groups, func(a, b ovs.Group) bool {
				return a.ID == b.ID && a.Type == b.Type && slices.Equal(a.Buckets, b.Buckets)
			}) {
				return fmt.Errorf("the groups are %v, want %v", now, groups)
			}
			return sameRules(rules, w.flows(gw1, lab.BrInt))
		})
		w.t.Logf("%s: healed after %s", name, time.Since(began).Round(time.Millisecond))
		w.askOutside(5, firstFIP)
	}
}
