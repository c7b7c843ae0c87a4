package packets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
)

const (
	// atOnce is what may pass until a change that the switch tells of is
	// mended.
	atOnce = time.Second
	// Intervals of the audits in these tests.
	auditInterval     = 2 * time.Second
	fullAuditInterval = 5 * time.Second
)

func newHealWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, lab.FlatConfig{Workers: 1}, harness.Options{AuditInterval: auditInterval, FullAuditInterval: fullAuditInterval})
	w.connect(vmA)
	// Everything is in place and nothing more comes: what changes from here
	// on is the test's doing.
	watch(never)
	return w
}

func (w *world) ofctl(options []string, command string, args ...string) {
	w.t.Helper()
	if _, err := w.Node(lab.Gateway).Ofctl(w.ctx, options, command, lab.BrInt, args...); err != nil {
		w.t.Fatal(err)
	}
}

// ruleOfA is the rule that leads answers to VM-A.
func (w *world) ruleOfA() ovs.Flow {
	w.t.Helper()
	for _, f := range w.flows(lab.Gateway, lab.BrInt) {
		if f.Table == 32 && f.Has("nw_dst="+vmA.ip) {
			return f
		}
	}
	w.t.Fatal("VM-A has no rule")
	return ovs.Flow{}
}

// expectAgain waits until exactly the rules of before are there.
func (w *world) expectAgain(limit time.Duration, what string, before []ovs.Flow) {
	w.t.Helper()
	harness.Eventually(w.t, limit, what, func() error { return sameRules(before, w.flows(lab.Gateway, lab.BrInt)) })
}

func sameRules(want, got []ovs.Flow) error {
	texts := func(rules []ovs.Flow) []string {
		var out []string
		for _, f := range rules {
			out = append(out, fmt.Sprintf("%#x %s", f.Cookie, f))
		}
		slices.Sort(out)
		return out
	}
	if w, g := texts(want), texts(got); !slices.Equal(w, g) {
		return fmt.Errorf("the rules are\n%s\nwant\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
	return nil
}

func TestDeletedRuleComesBackAtOnce(t *testing.T) {
	w := newHealWorld(t)
	before := w.flows(lab.Gateway, lab.BrInt)
	w.ofctl([]string{"--strict"}, "del-flows", w.ruleOfA().Key())
	w.expectAgain(atOnce, "a deleted rule", before)
	w.ofctl(nil, "del-flows")
	w.expectAgain(2*atOnce, "all rules of a bridge, deleted together", before)
}

func TestChangedActionsAreMendedAtTheNextFullAudit(t *testing.T) {
	w := newHealWorld(t)
	before := w.flows(lab.Gateway, lab.BrInt)
	w.ofctl([]string{"--strict"}, "mod-flows", w.ruleOfA().Key()+" actions=drop")
	if f := w.ruleOfA(); f.Actions != "drop" {
		t.Fatalf("the edit did not take: %s", f)
	}
	w.expectAgain(fullAuditInterval+auditInterval, "changed actions", before)
}

func TestReAddedRuleIsMendedAtTheNextAudit(t *testing.T) {
	w := newHealWorld(t)
	before := w.flows(lab.Gateway, lab.BrInt)
	for _, cookie := range []uint64{0, w.ruleOfA().Cookie} {
		w.ofctl(nil, "add-flow", fmt.Sprintf("cookie=%#x,%s actions=drop", cookie, w.ruleOfA().Key()))
		if f := w.ruleOfA(); f.Actions != "drop" || f.Cookie != cookie {
			t.Fatalf("the edit did not take: %s", f)
		}
		limit := auditInterval + atOnce
		if cookie != 0 {
			limit = fullAuditInterval + auditInterval
		}
		w.expectAgain(limit, fmt.Sprintf("a rule re-added with cookie %#x", cookie), before)
	}
}

func TestPortThatComesBackWithAnotherNumberIsFollowedAtOnce(t *testing.T) {
	w := newHealWorld(t)
	gw := w.Node(lab.Gateway)
	old, err := gw.PortNumber(w.ctx, lab.ExternalPatch)
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.RemovePort(w.ctx, lab.ExternalPatch); err != nil {
		t.Fatal(err)
	}
	if err := gw.AddPort(w.ctx, lab.BrInt, ovs.Port{Name: lab.ExternalPatch, Kind: ovs.Patch, Peer: "external-to-int", Number: old + 40}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 2*atOnce, "the rules lead to the new number", func() error {
		out, in := false, false
		for _, f := range w.flows(lab.Gateway, lab.BrInt) {
			if strings.HasSuffix(f.Actions, fmt.Sprintf("output:%d", old)) || f.Has(fmt.Sprintf("in_port=%d", old)) {
				return fmt.Errorf("there is %s", f)
			}
			out = out || strings.HasSuffix(f.Actions, fmt.Sprintf("output:%d", old+40))
			in = in || f.Has(fmt.Sprintf("in_port=%d", old+40))
		}
		if !out || !in {
			return fmt.Errorf("rules out: %v, rules in: %v", out, in)
		}
		return nil
	})
	if err := probe.Ping(w.within(soon), w.Host(vmA.name).NS, internet); err != nil {
		t.Error(err)
	}
}

func TestForeignRuleIsNeverTouched(t *testing.T) {
	w := newHealWorld(t)
	foreign := []string{
		"cookie=0x1,table=60,priority=7,tcp,tp_dst=7,actions=drop",
		"cookie=0,table=31,priority=39999,ip,nw_dst=198.51.100.7,actions=drop",
	}
	for _, f := range foreign {
		w.ofctl(nil, "add-flow", f)
	}
	added := time.Now()
	// A change and both audits pass.
	w.updateRouter(map[string]any{"enableSnat": false})
	w.waitRules("no SNAT rule", noRule(isSNAT))
	w.updateRouter(map[string]any{"enableSnat": true})
	w.waitSNAT(snatIP)
	watch(fullAuditInterval + auditInterval - time.Since(added))
	passed := time.Since(added) - 100*time.Millisecond
	rules := w.flows(lab.Gateway, lab.BrInt)
	for _, line := range foreign {
		want, err := ovs.ParseFlow(line)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rules, func(f ovs.Flow) bool { return f.String() == want.String() })
		if i < 0 || rules[i].Cookie != want.Cookie || rules[i].Duration < passed {
			t.Errorf("touched: %s", line)
		}
	}
}

// ovs-vswitchd dies and starts anew: its rules are lost and its ports may have
// other numbers; everything comes back (REC-1, rules).
func TestREC1(t *testing.T) {
	w := newHealWorld(t)
	before := w.flows(lab.Gateway, lab.BrInt)
	w.ofctl([]string{"--strict"}, "del-flows", w.ruleOfA().Key())
	w.expectAgain(atOnce, "a deleted rule", before)

	for _, node := range []string{lab.Gateway, "w1"} {
		if err := w.Node(node).KillSwitch(); err != nil {
			t.Fatal(err)
		}
		if err := w.Node(node).StartSwitch(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := probe.Ping(w.within(15*time.Second), w.Host(vmA.name).NS, internet); err != nil {
		t.Fatal(err)
	}
	if seen, err := probe.AskTCP(w.within(soon), w.Host(vmA.name).NS, 0, w.services.tcp.Address); err != nil || seen.Addr() != snatIP {
		t.Errorf("seen as %s, %v", seen, err)
	}
	harness.Eventually(t, soon, "the number of rules is as before", func() error {
		if n := len(w.flows(lab.Gateway, lab.BrInt)); n != len(before) {
			return fmt.Errorf("%d, was %d", n, len(before))
		}
		return nil
	})
}
