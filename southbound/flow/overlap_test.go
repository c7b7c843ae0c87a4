package flow

import "testing"

func TestAmbiguousFindsRulesThatMeet(t *testing.T) {
	rule := func(s string) Rule {
		r, err := ParseRule(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const first = "table=31,priority=41500,tcp,dl_src=fa:16:3e:00:00:11,nw_src=10.10.0.11,tp_src=0x50/0xfffc actions=goto_table:32"
	for second, want := range map[string]bool{
		"table=31,priority=41500,ip,nw_dst=172.16.0.150 actions=drop":                                            true,
		"table=31,priority=41500,tcp,nw_src=10.10.0.0/16,tp_src=82 actions=drop":                                 true,
		"table=31,priority=41500,tcp,dl_vlan=7,tp_dst=9 actions=drop":                                            true,
		"table=31,priority=41500,metadata=0x1/0x1 actions=drop":                                                  true,
		"table=31,priority=41500,ip,nw_dst=172.16.0.150 actions=goto_table:32":                                   false, // the same
		"table=31,priority=41501,ip,nw_dst=172.16.0.150 actions=drop":                                            false,
		"table=32,priority=41500,ip,nw_dst=172.16.0.150 actions=drop":                                            false,
		"table=31,priority=41500,udp actions=drop":                                                               false,
		"table=31,priority=41500,arp actions=drop":                                                               false,
		"table=31,priority=41500,tcp,tp_src=84 actions=drop":                                                     false,
		"table=31,priority=41500,ip,nw_src=10.11.0.0/16 actions=drop":                                            false,
		"table=31,priority=41500,ip,dl_src=fa:16:3e:00:00:12 actions=drop":                                       false,
		"table=31,priority=41500,tcp,dl_src=fa:16:3e:00:00:11,nw_src=10.10.0.11,tp_src=0x50/0xfffc actions=drop": false, // one key
	} {
		if got := len(Ambiguous([]Rule{rule(first), rule(second)})) == 1; got != want {
			t.Errorf("%s: %t", second, got)
		}
	}
}
