package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvnet/integration/ovs"
	"kvnet/model"
)

func loadAll(t *testing.T) []*Scenario {
	t.Helper()
	folders, err := filepath.Glob("testdata/scenarios/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	var all []*Scenario
	for _, folder := range folders {
		s, err := Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestScenariosAreRead(t *testing.T) {
	for _, s := range loadAll(t) {
		if len(s.Expected) != len(s.Steps) {
			t.Errorf("%s: %d steps, %d recorded states", s.Folder, len(s.Steps), len(s.Expected))
		}
		known := map[model.DPID]bool{}
		ids, err := s.deviceIDs()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			known[id] = true
		}
		rules := 0
		for step, state := range s.Expected {
			for device, held := range state {
				if !known[device] {
					t.Errorf("%s step %d: device %s was never added", s.Folder, step, device)
				}
				rules += len(held)
				for _, r := range held {
					if owner(r, s.addresses()) == handlerUnknown {
						t.Errorf("%s step %d: rule of nobody: %s", s.Folder, step, r)
					}
				}
			}
		}
		if rules == 0 {
			t.Errorf("%s: no rules", s.Folder)
		}
	}
}

// Every row of the table changes something in every scenario that it names, so a
// row that has become wrong is found without switches.
func TestDeviationsAreAboutSomething(t *testing.T) {
	for _, s := range loadAll(t) {
		for step := range s.Steps {
			if _, err := s.apply(step + 1); err != nil {
				t.Errorf("%s: %v", s.Folder, err)
			}
		}
	}
	for _, d := range deviations {
		kinds := 0
		for _, x := range []string{d.Gone, d.Come, d.Edit, d.Over} {
			if x != "" {
				kinds++
			}
		}
		if d.Why == "" || d.Quirk == "" || kinds != 1 {
			t.Errorf("row %+v says not what it is about", d)
		}
	}
}

func TestEveryDeviationHasARowInTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	quirks := map[string]bool{"S-5": true, "S-12": true} // the declared addition and rewrite
	for _, d := range deviations {
		quirks[d.Quirk] = true
	}
	for quirk := range quirks {
		if !strings.Contains(string(page), "\n| "+quirk+" |") {
			t.Errorf("docs/deviations.md has no row %s", quirk)
		}
	}
}

func TestLastBlockOfAStepCounts(t *testing.T) {
	states, err := parseExpected(strings.Join([]string{
		"### step 1 createLb -- note", "## of:00000000000000a1", "table=31, priority=1 actions=drop",
		"# --- after the next group statistics polls", "## of:00000000000000a1", "table=32, priority=2 actions=drop",
		"### step 2 removeLb",
	}, "\n"), ovs.ParseFlow)
	if err != nil {
		t.Fatal(err)
	}
	if got := states[1][0xa1]; len(got) != 1 || got[0].Table != 32 {
		t.Errorf("step 1 holds %v", got)
	}
	if got, ok := states[2]; !ok || len(got) != 0 {
		t.Errorf("step 2 holds %v", got)
	}
}

func TestRuleTextIsCanonical(t *testing.T) {
	const want = "table=31, priority=41000,arp,arp_op=1,arp_tpa=10.20.0.5,in_port=10 actions=IN_PORT"
	for _, line := range []string{
		"table=31, priority=41000,arp,in_port=10,arp_tpa=10.20.0.5,arp_op=1 actions=IN_PORT",
		" cookie=0x6b00000000000001, duration=1.5s, table=31, n_packets=0, n_bytes=0, send_flow_rem priority=41000,arp,arp_op=1,in_port=10,arp_tpa=10.20.0.5 actions=IN_PORT",
	} {
		r, err := ovs.ParseFlow(line)
		if err != nil || r.String() != want {
			t.Errorf("%s\n got %s, %v\nwant %s", line, r, err, want)
		}
	}
	if _, err := ovs.ParseFlow("table=31"); err == nil {
		t.Error("a rule without actions is read")
	}
}

func TestNamesOfGroupsDontCountButWhatTheyDo(t *testing.T) {
	read := func(flows, groups string) []ovs.Flow {
		r, err := ovs.ParseFlow(flows)
		if err != nil {
			t.Fatal(err)
		}
		g, err := ovs.ParseGroup(groups)
		if err != nil {
			t.Fatal(err)
		}
		return []ovs.Flow{r, groupRule(g)}
	}
	const rule = "table=32, priority=41500,tcp,nw_dst=10.10.1.250,tp_dst=80 actions=set_field:fe:00:00:00:01:01->eth_src,group:"
	want := State{0xa1: read(rule+"G(lb1)", "group_id=G(lb1),type=select,bucket=weight:1,actions=NORMAL,bucket=actions=output:11")}
	s := &Scenario{}
	for name, c := range map[string]struct {
		got  []ovs.Flow
		same bool
	}{
		"another id, another order": {read(rule+"1795162113", " group_id=1795162113,type=select,bucket=bucket_id:0,actions=output:11,bucket=bucket_id:1,weight:1,actions=NORMAL"), true},
		"another bucket":            {read(rule+"7", "group_id=7,type=select,bucket=actions=NORMAL,bucket=actions=output:12"), false},
		"another weight":            {read(rule+"7", "group_id=7,type=select,bucket=weight:2,actions=NORMAL,bucket=actions=output:11"), false},
		"another group":             {read(rule+"8", "group_id=7,type=select,bucket=actions=NORMAL,bucket=actions=output:11"), false},
	} {
		if err := s.compare(1, want, State{0xa1: c.got}); (err == nil) != c.same {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompareFindsEveryDifference(t *testing.T) {
	s := &Scenario{Steps: []Step{{Router: map[string]any{"external": map[string]any{"ip": "10.20.0.5"}}}}}
	rule := func(text string) ovs.Flow {
		r, err := ovs.ParseFlow(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	miss := rule("table=31, priority=0 actions=goto_table:32")
	down := rule("table=31, priority=40500,ip,nw_dst=10.20.0.5 actions=set_field:fe:00:00:00:01:01->eth_src,ct(table=32,nat)")
	zoned := rule("table=31, priority=40500,ip,nw_dst=10.20.0.5 actions=set_field:fe:00:00:00:01:01->eth_src,ct(table=32,zone=1,nat)")
	for name, c := range map[string]struct {
		want, got []ovs.Flow
		say       string
	}{
		"equal":          {[]ovs.Flow{miss, down}, []ovs.Flow{zoned, miss}, ""},
		"missing":        {[]ovs.Flow{miss, down}, []ovs.Flow{miss}, "missing"},
		"too much":       {[]ovs.Flow{miss}, []ovs.Flow{miss, zoned}, "too much"},
		"zone 0":         {[]ovs.Flow{miss, down}, []ovs.Flow{miss, down}, "S-12"},
		"other actions":  {[]ovs.Flow{miss}, []ovs.Flow{rule("table=31, priority=0 actions=drop")}, "too much"},
		"passed over":    {[]ovs.Flow{miss}, []ovs.Flow{miss, rule("table=31, priority=43000,icmp actions=IN_PORT")}, ""},
		"rule of nobody": {[]ovs.Flow{miss}, []ovs.Flow{miss, rule("table=31, priority=7 actions=drop")}, "nobody"},
	} {
		err := s.compare(1, State{0xa1: c.want}, State{0xa1: c.got})
		if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
