package flow

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTextReadsBackAsTheSameRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRule(t, true)
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		got, err := ParseRule(r.String())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("%s\nread back as\n%s\n%#v\n%#v", r, got, r, got)
		}
	})
}

func TestTextReadsBackAsTheSameGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t, true)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		got, err := ParseGroup(g.String())
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(g) {
			t.Fatalf("%s\nread back as\n%s", g, got)
		}
	})
}

// canonical holds the text of each kind of rule that the pipeline uses.
var canonical = []string{
	`table=0,priority=0,actions=goto_table:31`,
	`table=32,priority=0,actions=drop`,
	`table=80,priority=10000,actions=NORMAL`,
	`table=31,priority=41000,arp,in_port=10,arp_tpa=172.16.0.100,arp_op=1,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:2->arp_op,set_field:fe:00:00:00:00:02->eth_src,set_field:fe:00:00:00:00:02->arp_sha,set_field:172.16.0.100->arp_spa,IN_PORT`,
	`table=31,priority=41000,arp,arp_spa=172.16.0.1,arp_tpa=172.16.0.100,arp_op=2,actions=CONTROLLER:65535`,
	`table=31,priority=41000,arp,vlan_tci=0x0000/0x1fff,arp_tpa=192.168.10.1,arp_op=1,actions=IN_PORT`,
	`table=31,priority=40500,ip,dl_dst=fa:00:00:00:00:0a,actions=ct(commit,zone=5,nat(src=172.16.0.100:1025-65535)),set_field:52:54:00:aa:bb:01->eth_dst,set_field:fe:00:00:00:00:02->eth_src,output:"int-to-external"`,
	`table=31,priority=40500,ip,dl_vlan=100,nw_dst=172.16.0.101,actions=pop_vlan,set_field:fa:00:00:00:00:0a->eth_src,ct(table=32,zone=5,nat)`,
	`table=31,priority=43000,icmp,nw_dst=192.168.10.1,icmp_type=8,icmp_code=0,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_OF_IP_SRC[]->NXM_OF_IP_DST[],load:0xff->NXM_NX_IP_TTL[],load:0->NXM_OF_ICMP_TYPE[],set_field:192.168.10.1->ip_src,set_field:fa:00:00:00:00:0a->eth_src,IN_PORT`,
	`table=32,priority=40500,ip,dl_src=fa:00:00:00:00:0a,nw_dst=10.10.0.11,actions=set_field:fa:16:3e:00:00:11->eth_dst,goto_table:80`,
	`table=0,priority=30000,ip,dl_dst=fa:16:3e:00:00:12,nw_dst=10.10.0.12,actions=set_field:0x3e8->tun_id,set_field:10.0.0.2->tun_dst,output:"vxlan"`,
	`table=0,priority=41000,ip,tun_id=0x3e8,dl_dst=fa:00:00:00:00:0a,nw_src=10.10.0.0/24,nw_dst=10.20.0.21,actions=set_field:0x7d0->tun_id,IN_PORT`,
	`table=32,priority=41500,tcp,nw_dst=10.10.0.200,tp_dst=80,actions=set_field:fa:00:00:00:00:0a->eth_src,group:1795162113`,
	`table=40,priority=31000,udp,dl_src=fa:16:3e:00:00:11,nw_src=10.10.0.11,tp_src=0x1f40/0xfffc,actions=goto_table:43`,
	`table=44,priority=30500,ct_state=-trk,ip,actions=ct(table=45)`,
	`table=45,priority=32500,ct_state=+new+trk,ip,actions=drop`,
	`table=1,priority=1,sctp,metadata=0x5/0xff,in_port=LOCAL,actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:10`,
}

func TestCanonicalTextIsKept(t *testing.T) {
	for _, text := range canonical {
		r, err := ParseRule(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
		if got := r.String(); got != text {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
}

func TestOtherFormsOfTheSameRuleAreRead(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a line of dump-flows", ` cookie=0x6b00000012345678, duration=1.5s, table=31, n_packets=3, n_bytes=99, idle_age=7, send_flow_rem reset_counts priority=40500,ip,nw_dst=10.20.0.5 actions=ct(table=32,nat)`,
			`table=31,priority=40500,ip,nw_dst=10.20.0.5,actions=ct(table=32,nat)`},
		{"table 0 and the default priority left out", `in_port=3 actions=drop`, `table=0,priority=32768,in_port=3,actions=drop`},
		{"no match", `table=80, priority=10000 actions=NORMAL`, `table=80,priority=10000,actions=NORMAL`},
		{"fields in another order", `priority=5,arp_op=1,arp_tpa=1.2.3.4,arp,in_port=10,actions=IN_PORT`, `table=0,priority=5,arp,in_port=10,arp_tpa=1.2.3.4,arp_op=1,actions=IN_PORT`},
		{"decimal numbers", `priority=5,tun_id=1000,actions=set_field:2000->tun_id,LOCAL`, `table=0,priority=5,tun_id=0x3e8,actions=set_field:0x7d0->tun_id,LOCAL`},
		{"protocol by number", `priority=5,dl_type=0x0800,nw_proto=6,tp_dst=80,actions=CONTROLLER`, `table=0,priority=5,tcp,tp_dst=80,actions=CONTROLLER:65535`},
		{"an unquoted port name", `priority=5,in_port=vxlan,actions=output:eth0`, `table=0,priority=5,in_port="vxlan",actions=output:"eth0"`},
		{"host bits below a prefix", `priority=5,ip,nw_src=10.1.2.3/8,nw_dst=0.0.0.0/0,actions=drop`, `table=0,priority=5,ip,nw_src=10.0.0.0/8,actions=drop`},
		{"ranges of one", `priority=5,ip,actions=ct(commit,nat(src=1.2.3.4-1.2.3.4:80-80))`, `table=0,priority=5,ip,actions=ct(commit,nat(src=1.2.3.4:80))`},
		{"a port name with separators", `priority=5,in_port="a, actions=(b",actions=output:"x\"),y"`, `table=0,priority=5,in_port="a, actions=(b",actions=output:"x\"),y"`},
	} {
		r, err := ParseRule(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := r.String(); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWhatARuleCannotSayIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `table=1`, `table=256,actions=drop`, `priority=65536,actions=drop`, `actions=`,
		`ip,tcp,actions=drop`, `ip,ip,actions=drop`, `in_port=1,in_port=2,actions=drop`,
		`idle_timeout=5,actions=drop`, `reg0=1,actions=drop`, `tcp6,actions=drop`,
		`dl_src=00:00:00:00:00:00,actions=drop`, `dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop`,
		`ip,nw_src=::1,actions=drop`, `ip,nw_src=1.2.3.4/33,actions=drop`, `vlan_tci=0x1064,actions=drop`,
		`in_port=ANY,actions=drop`, `in_port="",actions=drop`, `in_port="x,actions=drop`, `ct_state=+odd,actions=drop`,
		`ct_state=+trk-trk,actions=drop`, `actions=resubmit(,5)`, `actions=goto_table:5,drop`, `actions=goto_table:0`,
		`actions=set_field:5->reg0`, `actions=set_field:300->arp_op`, `actions=set_field:100->vlan_vid`,
		`actions=move:NXM_OF_ETH_SRC[]`, `actions=move:NXM_OF_ETH_SRC[0..3]->NXM_OF_ETH_DST[0..3]`,
		`actions=load:5->NXM_OF_ETH_SRC[]`, `actions=ct(commit`, `actions=ct)`, `actions=ct(zone=reg0[0..15])`,
		`actions=ct(nat(both=1.2.3.4))`, `actions=ct(nat(src=1.2.3.4:x))`, `actions=ct(force)`, `actions=push_vlan:0x88a8`,
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is read as %s", text, r)
		}
	}
}

func TestGroupsInTheFormsOfOvsOfctl(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`group_id=5,type=select,bucket=weight:1,actions=set_field:fa:16:3e:00:00:11->eth_dst,set_field:10.10.0.11->ip_dst,NORMAL,bucket=weight:2,actions=drop`, ``},
		{`group_id=5,type=select,bucket=actions=set_field:fa:16:3e:00:00:11->eth_dst,NORMAL,bucket=actions=output:3`,
			`group_id=5,type=select,bucket=weight:1,actions=set_field:fa:16:3e:00:00:11->eth_dst,NORMAL,bucket=weight:1,actions=output:3`},
		{` group_id=6,type=all,bucket=actions=output:"a,bucket=b"`, `group_id=6,type=all,bucket=actions=output:"a,bucket=b"`},
		{`group_id=7,type=select`, ``},
	} {
		if c.want == "" {
			c.want = c.in
		}
		g, err := ParseGroup(c.in)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := g.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	for _, text := range []string{``, `type=select`, `group_id=x`, `group_id=1,type=indirect`, `group_id=1,bucket=`, `group_id=1,bucket=watch_port:1,actions=drop`, `group_id=1,bucket=weight:70000,actions=drop`, `group_id=1,bucket=actions=goto_table:4`, `group_id=1,selection_method=hash`} {
		if g, err := ParseGroup(text); err == nil {
			t.Errorf("%q is read as %s", text, g)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, text := range canonical {
		f.Add(text)
		f.Add(strings.Replace(text, ",actions=", " actions=", 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		again, err := ParseRule(r.String())
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%q is read as %s, that as %s, %v", text, r, again, err)
		}
	})
}

func FuzzParseGroup(f *testing.F) {
	f.Add(`group_id=5,type=select,bucket=weight:1,actions=set_field:fa:16:3e:00:00:11->eth_dst,NORMAL,bucket=weight:2,actions=drop`)
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGroup(text)
		if err != nil {
			return
		}
		again, err := ParseGroup(g.String())
		if err != nil || !again.Equal(g) {
			t.Fatalf("%q is read as %s, that as %s, %v", text, g, again, err)
		}
	})
}
