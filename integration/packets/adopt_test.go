package packets

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

const (
	onosApplication = 0x00b5
	onosCookies     = "0x00b5000000000000/0xffff000000000000"
	onosGroup       = 0x51d0_0000
	foreignCookie   = 0x77
)

// Switches that ONOS has left, under traffic through SNAT and a balancer: the
// take-over loses no packet and leaves nothing of ONOS's.
func TestAdoptionLosesNoPacket(t *testing.T) {
	w := newWorld(t, lab.FlatConfig{Workers: 2}, harness.Options{})
	w.connect(vmA, vmB)
	vip := netip.MustParseAddr("192.168.20.250")
	for _, v := range []vm{vmA, vmB} {
		s, err := probe.ServeUDP(w.Host(v.name).NS, netip.AddrPortFrom(netip.MustParseAddr(v.ip), 53))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
	}
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", map[string]any{
		"name": "lb1", "vip": vip.String(), "networkId": vmA.network, "members": []string{vmA.ip, vmB.ip}, "rules": []map[string]any{portRuleOf("UDP", 53)},
	})
	public := netip.MustParseAddr("172.16.0.150")
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/floating-ip", map[string]any{
		"id": "f1", "routerName": "r1", "networkName": "ext-net", "floatingIp": public.String(), "fixedIp": vip.String(),
	})
	w.waitRules("rules of the floating IP", func(rules []ovs.Flow) error {
		if !slices.ContainsFunc(rules, func(f ovs.Flow) bool { return f.Has("arp_tpa=" + public.String()) }) {
			return fmt.Errorf("no rule answers for it")
		}
		return nil
	})
	w.waitRules("rules of the balancer", func(rules []ovs.Flow) error {
		if !slices.ContainsFunc(rules, func(f ovs.Flow) bool { return strings.Contains(f.Actions, "group:") }) {
			return fmt.Errorf("no rule leads to a group")
		}
		return nil
	})

	if err := probe.AskUDP(w.within(soon), w.ext.NS, 0, netip.AddrPortFrom(public, 53)); err != nil {
		t.Fatal(err)
	}
	w.Relay.Hold(w.names()...)
	if err := w.Kill(); err != nil {
		t.Fatal(err)
	}
	kept := w.becomeONOS()
	through := w.startTraffic(vmA)
	balanced, err := probe.StartUDP(w.ext.NS, netip.AddrPortFrom(public, 53), pulse)
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, soon, "the balancer works by ONOS's rules", func() error {
		if n := balanced.Answered(); n < 10 {
			return fmt.Errorf("%d answers", n)
		}
		return nil
	})
	if err := w.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.letIn(w.names()...)
	w.WaitComplete(w.ctx)
	before := w.rulesByBridge()
	for name, rules := range before {
		if n := countOfONOS(rules); n == 0 && len(rules) > 0 {
			t.Errorf("%s holds %d rules, none of them with ONOS's cookies", name, len(rules))
		}
	}

	dry := w.kvnetAdopt()
	for name, rules := range w.rulesByBridge() {
		if len(rules) != len(before[name]) || countOfONOS(rules) != countOfONOS(before[name]) {
			t.Errorf("%s: the dry run has changed something\n%s", name, dry)
		}
	}
	position := through.udp.Position()
	done := w.kvnetAdopt("--yes")
	harness.Eventually(t, soon, "traffic goes on", func() error {
		if n := through.udp.Position(); n < position+200 {
			return fmt.Errorf("%d packets", n-position)
		}
		return nil
	})
	through.expectNoLoss(t)
	if r := balanced.Stop(); len(r.Lost) > 0 || r.Err != nil {
		t.Errorf("the balancer lost packets: %s", r)
	}
	w.expectAdopted(kept, done)
	for line := range strings.Lines(done) {
		if f := strings.Fields(line); len(f) == 6 && (f[3] != "1" || f[5] != "0") {
			t.Errorf("more is removed than what was left behind, or something is added: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("dry run:\n%s\nadoption:\n%s", dry, done)
	}
}

func portRuleOf(protocol string, port int) map[string]any {
	return map[string]any{"protocol": protocol, "portRangeMin": port, "portRangeMax": port}
}

var (
	zone     = regexp.MustCompile(`,?zone=\d+`)
	groupRef = regexp.MustCompile(`group:(\d+)`)
)

// becomeONOS has all switches hold what ONOS would: the same rules with ONOS's
// cookies, conntrack zone 0 and other groups, and some that it has left behind.
// It returns the number of rules by bridge that are somebody else's.
func (w *world) becomeONOS() map[string]int {
	w.t.Helper()
	kept := map[string]int{}
	for _, b := range w.Controlled {
		node := w.Node(b.Node)
		rules := w.flows(b.Node, b.Bridge)
		groups, err := node.Groups(w.ctx, b.Bridge)
		if err != nil {
			w.t.Fatal(err)
		}
		ids := map[string]string{}
		text := "group_id=1372585983,type=all\n" // one that is left behind
		for i, g := range groups {
			ids[g.ID] = fmt.Sprint(onosGroup + i)
			text += "group_id=" + ids[g.ID] + ",type=" + g.Type
			for _, actions := range g.Buckets {
				text += ",bucket=actions=" + actions
			}
			text += "\n"
		}
		w.load(node, "add-groups", b.Bridge, text)
		text = ""
		for i, f := range rules {
			f.Actions = zone.ReplaceAllString(f.Actions, "")
			f.Actions = groupRef.ReplaceAllStringFunc(f.Actions, func(g string) string { return "group:" + ids[strings.TrimPrefix(g, "group:")] })
			text += fmt.Sprintf("cookie=0x%x,%s\n", uint64(onosApplication)<<48|uint64(0x9e3779b9*uint32(i+1)), f)
		}
		text += fmt.Sprintf("cookie=0x%x,table=31,priority=41500,ip,nw_dst=10.99.0.1,actions=drop\n", uint64(onosApplication)<<48|1)
		text += fmt.Sprintf("cookie=0x%x,table=99,priority=1,actions=drop\n", foreignCookie)
		kept[b.Name()] = 1
		w.load(node, "add-flows", b.Bridge, text)
		for _, g := range groups {
			if _, err := node.Ofctl(w.ctx, nil, "del-groups", b.Bridge, "group_id="+g.ID); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return kept
}

// load hands a text to ovs-ofctl.
func (w *world) load(node *lab.Node, command, bridge, text string) {
	w.t.Helper()
	file := filepath.Join(w.Dir, "load")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if _, err := node.Ofctl(w.ctx, nil, command, bridge, file); err != nil {
		w.t.Fatal(err)
	}
}

func countOfONOS(rules []ovs.Flow) (n int) {
	for _, f := range rules {
		if f.Cookie>>48 == onosApplication {
			n++
		}
	}
	return n
}

// kvnetAdopt calls the command, which must succeed.
func (w *world) kvnetAdopt(args ...string) string {
	w.t.Helper()
	binary, err := server.Binary()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, 4*soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"adopt", "--cookie", onosCookies, "--url", "http://" + w.REST}, args...)...)
	cmd.Env = append(os.Environ(), "KVNET_PASSWORD=rocks")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("kvnet adopt %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// expectAdopted checks that the switches hold nothing but kvnet's rules and
// groups, and somebody else's rules.
func (w *world) expectAdopted(kept map[string]int, said string) {
	w.t.Helper()
	for _, b := range w.Controlled {
		others := 0
		for _, f := range w.flows(b.Node, b.Bridge) {
			switch {
			case f.Cookie == foreignCookie:
				others++
			case f.Cookie>>56 != 0x6b:
				w.t.Errorf("%s still holds %s (cookie 0x%x)\n%s", b.Name(), f, f.Cookie, said)
			}
		}
		if others != kept[b.Name()] {
			w.t.Errorf("%s holds %d rules of somebody else, want %d", b.Name(), others, kept[b.Name()])
		}
		groups, err := w.Node(b.Node).Groups(w.ctx, b.Bridge)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, g := range groups {
			if strings.HasPrefix(g.ID, "1372") { // 0x51d0…
				w.t.Errorf("%s still holds group %+v\n%s", b.Name(), g, said)
			}
		}
	}
}
