package cluster

import (
	"strings"
	"testing"
	"time"

	"kvnet/integration/ovs"
)

func TestDifferences(t *testing.T) {
	const bridge = "gw1/br-int"
	began := time.Now()
	record := func(after time.Duration, group string, rules ...string) Record {
		r := Record{Time: began.Add(after), Rules: map[string][]ovs.Flow{bridge: nil}, Groups: map[string][]ovs.Group{}}
		for _, text := range rules {
			f, err := ovs.ParseFlow(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Rules[bridge] = append(r.Rules[bridge], f)
		}
		if group != "" {
			g, err := ovs.ParseGroup(group)
			if err != nil {
				t.Fatal(err)
			}
			r.Groups[bridge] = []ovs.Group{g}
		}
		return r
	}
	const group = "group_id=1,type=select,bucket=actions=output:1"
	before := record(0, group, "duration=5s, table=31, priority=7,ip actions=drop")
	for name, c := range map[string]struct {
		later     Record
		rewritten []string
		want      string // in the only difference; empty: none
	}{
		"all as it was":             {record(time.Minute, group, "duration=65s, table=31, priority=7,ip actions=drop"), nil, ""},
		"a rule is gone":            {record(time.Minute, group), nil, "gone: table=31"},
		"a rule is new":             {record(time.Minute, group, "duration=65s, table=31, priority=7,ip actions=drop", "duration=1s, table=0, priority=1 actions=NORMAL"), nil, "new: table=0"},
		"a rule is young":           {record(time.Minute, group, "duration=3s, table=31, priority=7,ip actions=drop"), nil, "was 5s old, is 3s old"},
		"a rule may be young":       {record(time.Minute, group, "duration=3s, table=31, priority=7,ip actions=drop"), []string{"gw1"}, ""},
		"a group has other buckets": {record(time.Minute, strings.Replace(group, "output:1", "output:2", 1), "duration=65s, table=31, priority=7,ip actions=drop"), nil, "groups were"},
	} {
		t.Run(name, func(t *testing.T) {
			got := before.Differences(c.later, c.rewritten...)
			switch {
			case c.want == "" && len(got) > 0, c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
