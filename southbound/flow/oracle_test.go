package flow

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ofctl runs ovs-ofctl for OpenFlow 1.3. It needs no running switch.
func ofctl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("ovs-ofctl")
	if err != nil {
		t.Fatalf("this test compares with ovs-ofctl of Debian's openvswitch-switch (make test installs it): %v", err)
	}
	out, err := exec.Command(path, append([]string{"-O", "OpenFlow13"}, args...)...).CombinedOutput()
	return string(out), err
}

// parseFlows gives lines to ovs-ofctl and returns what it makes of them, in the
// form of Rule.String.
func parseFlows(t *testing.T, lines []string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ofctl(t, "parse-flows", file)
	if err != nil {
		t.Fatalf("ovs-ofctl refuses the rules: %v\n%s", err, out)
	}
	var got []string
	for line := range strings.Lines(out) {
		if _, after, ok := strings.Cut(strings.TrimSpace(line), ": ADD "); ok {
			got = append(got, canonicalOVS(after))
		}
	}
	return got
}

// canonicalOVS brings a flow-mod as ovs-ofctl prints it into the form of
// Rule.String: table and priority are always there, commas instead of blanks.
func canonicalOVS(s string) string {
	table, priority := "0", "32768"
	if after, ok := strings.CutPrefix(s, "table:"); ok {
		table, s, _ = strings.Cut(after, " ")
	}
	if after, ok := strings.CutPrefix(s, "priority="); ok {
		i := strings.IndexAny(after, ", ")
		priority, s = after[:i], after[i+1:]
	}
	match, actions, _ := strings.Cut(" "+s, " actions=")
	match = strings.TrimSpace(match)
	if match != "" {
		match = "," + match
	}
	return fmt.Sprintf("table=%s,priority=%s%s,actions=%s", table, priority, match, actions)
}

func TestTextOfValidRulesIsAsOvsOfctlPrintsIt(t *testing.T) {
	var want []string
	gen := rapid.Custom(func(t *rapid.T) Rule { return drawRule(t, false) })
	for i := range 1000 {
		r := gen.Example(i)
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		want = append(want, r.String())
	}
	for _, text := range canonical {
		if !strings.Contains(text, `output:"`) {
			want = append(want, text)
		}
	}
	compare(t, parseFlows(t, want), want)
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("ovs-ofctl printed %d rules of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("kvnet     %s\novs-ofctl %s", want[i], got[i])
		}
	}
}

func TestTextOfGroupsIsReadByOvsOfctl(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) Group { return drawGroup(t, false) })
	for i := range 30 {
		g := gen.Example(i)
		for j := range g.Buckets {
			if g.Type == GroupSelect {
				g.Buckets[j].Weight = uint16(j + 2)
			}
		}
		out, err := ofctl(t, "parse-group", g.String())
		if err != nil {
			t.Fatalf("ovs-ofctl refuses %s: %v\n%s", g, err, out)
		}
		if _, got, _ := strings.Cut(strings.TrimSpace(out), " ADD "); got != g.String() {
			t.Errorf("kvnet     %s\novs-ofctl %s", g, got)
		}
	}
}

// refused are rules that fail Validate; what ovs-ofctl says of them is in ofctl.
var refused = []struct {
	name, text string
	ofctl      bool // ovs-ofctl refuses it too
}{
	{"IP address without IP", `table=1,priority=1,nw_dst=1.2.3.4,actions=drop`, false},
	{"transport port without protocol", `table=1,priority=1,ip,tp_dst=80,actions=drop`, false},
	{"ICMP type of TCP", `table=1,priority=1,tcp,icmp_type=8,actions=drop`, false},
	{"ARP operation of IP", `table=1,priority=1,ip,arp_op=1,actions=drop`, false},
	{"write of an IP address without IP", `table=1,priority=1,actions=set_field:1.2.3.4->ip_dst`, true},
	{"write of an ARP field of IP", `table=1,priority=1,ip,actions=set_field:1->arp_op`, true},
	{"load of an ICMP type of any IP", `table=1,priority=1,ip,actions=load:0->NXM_OF_ICMP_TYPE[]`, true},
	{"move of an ARP field of IP", `table=1,priority=1,ip,actions=move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[]`, true},
	{"move between sizes", `table=1,priority=1,arp,actions=move:NXM_NX_ARP_SHA[]->NXM_OF_ARP_TPA[]`, true},
	{"removal of no tag", `table=1,priority=1,ip,actions=pop_vlan`, true},
	{"VLAN id without tag", `table=1,priority=1,ip,actions=set_field:4100->vlan_vid`, true},
	{"connection tracking of ARP", `table=1,priority=1,arp,actions=ct(commit)`, true},
	{"commit of an invalid packet", `table=1,priority=1,ct_state=+inv,ip,actions=ct(commit)`, true},
	{"NAT without commit", `table=1,priority=1,ip,actions=ct(nat(src=1.2.3.4))`, true},
	{"NAT range from high to low", `table=1,priority=1,ip,actions=ct(commit,nat(src=1.2.3.9-1.2.3.4))`, true},
	{"NAT ports from high to low", `table=1,priority=1,ip,actions=ct(commit,nat(src=1.2.3.4:9-8))`, true},
	{"going on in the same table", `table=1,priority=1,actions=goto_table:1`, true},
	{"going on in an earlier table", `table=9,priority=1,actions=goto_table:1`, true},
	{"packets from NORMAL", `table=1,priority=1,in_port=NORMAL,actions=drop`, false},
	{"reserved group", `table=1,priority=1,actions=group:4294967295`, false},
	{"table 255", `table=255,priority=1,actions=drop`, false},
}

func TestValidateRefusesWhatASwitchRefuses(t *testing.T) {
	for _, c := range refused {
		r, err := ParseRule(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := r.Validate(); err == nil {
			t.Errorf("%s: Validate accepts %s", c.name, c.text)
		}
		if c.ofctl {
			if out, err := ofctl(t, "parse-flow", c.text); err == nil && !strings.Contains(out, "decode error") && strings.Contains(out, " ADD ") {
				t.Errorf("%s: ovs-ofctl accepts %s:\n%s", c.name, c.text, out)
			}
		}
	}
}

func TestValidateRefusesValuesThatNoTextCanHave(t *testing.T) {
	ip := Match{EthType: EthTypeIPv4}
	for name, r := range map[string]Rule{
		"bits outside of a mask":  {Match: Match{Metadata: Masked64{5, 4}}},
		"absent field with value": {Match: Match{TunID: OptUint64{Value: 5}}},
		"VLAN of no form":         {Match: Match{VLAN: 100}},
		"port with name and no.":  {Match: Match{InPort: Port{"x", 1}}},
		"reserved port number":    {Match: Match{InPort: NumberedPort(0xffffff07)}},
		"output to no port":       {Actions: []Action{Output{}}},
		"length without need":     {Actions: []Action{Output{Port: Normal, MaxLen: 5}}},
		"missing action":          {Actions: []Action{nil}},
		"missing address":         {Match: ip, Actions: []Action{SetIP{Field: FieldIPDst}}},
		"wrong form of a field":   {Match: ip, Actions: []Action{SetUint{FieldIPDst, 5}}},
		"load of a set field":     {Match: ip, Actions: []Action{Load{FieldTunID, 5}}},
		"too large value":         {Match: ip, Actions: []Action{Load{FieldIPTTL, 256}}},
		"range of known nat":      {Match: ip, Actions: []Action{CT{NAT: NAT{Kind: NATKnown, PortMin: 1}}}},
		"half a range":            {Match: ip, Actions: []Action{CT{Commit: true, NAT: NAT{Kind: NATSource, PortMin: 1, PortMax: 2}}}},
	} {
		if err := r.Validate(); err == nil {
			t.Errorf("%s: Validate accepts %s", name, r)
		}
	}
	for name, g := range map[string]Group{
		"reserved id":     {ID: 0xffffffff},
		"unknown type":    {ID: 1, Type: 9},
		"weight of all":   {ID: 1, Type: GroupAll, Buckets: []Bucket{{Weight: 1}}},
		"bad bucket":      {ID: 1, Type: GroupSelect, Buckets: []Bucket{{Actions: []Action{Output{}}}}},
		"write of no IP4": {ID: 1, Type: GroupSelect, Buckets: []Bucket{{Actions: []Action{SetIP{Field: FieldIPDst}}}}},
	} {
		if err := g.Validate(); err == nil {
			t.Errorf("%s: Validate accepts %s", name, g)
		}
	}
}
