package openflow_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func output(n uint32) flow.Action { return flow.Output{Port: flow.NumberedPort(n)} }

func ip(m flow.Match) flow.Match { m.EthType = flow.EthTypeIPv4; return m }

func proto(p uint8, m flow.Match) flow.Match { m.IPProto = p; return ip(m) }

// ruleKinds has every field of a match, alone and with masks, every action with
// every field, and the rules of the pipeline that combine them.
func ruleKinds() map[string]flow.Rule {
	m1, m2 := model.MAC{2, 0, 0, 0, 0, 1}, model.MAC{0xfe, 0, 0, 0, 0, 2}
	p24, p32 := netip.MustParsePrefix("10.1.2.0/24"), flow.Host(addr("10.1.2.3"))
	nat := func(k flow.NATKind) flow.NAT { return flow.NAT{Kind: k} }
	ranged := func(k flow.NATKind) flow.NAT {
		return flow.NAT{Kind: k, IPMin: addr("10.0.0.1"), IPMax: addr("10.0.0.9"), PortMin: 1025, PortMax: 65535}
	}
	one := func(k flow.NATKind) flow.NAT {
		return flow.NAT{Kind: k, IPMin: addr("10.0.0.1"), IPMax: addr("10.0.0.1")}
	}
	onePort := func(k flow.NATKind) flow.NAT {
		return flow.NAT{Kind: k, IPMin: addr("10.0.0.1"), IPMax: addr("10.0.0.1"), PortMin: 80, PortMax: 80}
	}
	tagged := flow.Match{VLAN: flow.VLANID(100)}
	arp := flow.Match{EthType: flow.EthTypeARP}
	icmp := proto(flow.ProtoICMP, flow.Match{})
	matches := map[string]flow.Match{
		"any":             {},
		"in_port":         {InPort: flow.NumberedPort(1)},
		"in_port local":   {InPort: flow.Local},
		"eth_src":         {EthSrc: m1},
		"eth_dst":         {EthDst: m2},
		"eth_type ip":     {EthType: flow.EthTypeIPv4},
		"eth_type arp":    {EthType: flow.EthTypeARP},
		"eth_type ipv6":   {EthType: flow.EthTypeIPv6},
		"eth_type lldp":   {EthType: 0x88cc},
		"vlan none":       {VLAN: flow.NoVLAN},
		"vlan none ip":    {VLAN: flow.NoVLAN, EthType: flow.EthTypeIPv4},
		"vlan 1":          {VLAN: flow.VLANID(1)},
		"vlan 4094 ip":    {VLAN: flow.VLANID(4094), EthType: flow.EthTypeIPv4},
		"ip_proto":        proto(47, flow.Match{}),
		"ip_src":          ip(flow.Match{IPSrc: p32}),
		"ip_dst":          ip(flow.Match{IPDst: p32}),
		"ip_src prefix":   ip(flow.Match{IPSrc: p24}),
		"ip_dst prefix":   ip(flow.Match{IPDst: p24}),
		"ip_dst half":     ip(flow.Match{IPDst: netip.MustParsePrefix("128.0.0.0/1")}),
		"tcp ports":       proto(flow.ProtoTCP, flow.Match{TPSrc: flow.ExactPort(1), TPDst: flow.ExactPort(65535)}),
		"udp ports":       proto(flow.ProtoUDP, flow.Match{TPSrc: flow.ExactPort(68), TPDst: flow.ExactPort(67)}),
		"sctp ports":      proto(flow.ProtoSCTP, flow.Match{TPSrc: flow.ExactPort(1), TPDst: flow.ExactPort(2)}),
		"tcp port 0":      proto(flow.ProtoTCP, flow.Match{TPDst: flow.ExactPort(0)}),
		"tcp dst range":   proto(flow.ProtoTCP, flow.Match{TPDst: flow.PortMask{Value: 0x1000, Mask: 0xfff0}}),
		"udp src range":   proto(flow.ProtoUDP, flow.Match{TPSrc: flow.PortMask{Value: 0x8000, Mask: 0x8000}}),
		"sctp dst range":  proto(flow.ProtoSCTP, flow.Match{TPDst: flow.PortMask{Value: 0, Mask: 0xff00}}),
		"icmp type 0":     proto(flow.ProtoICMP, flow.Match{ICMPType: flow.Uint8(0)}),
		"icmp type code":  proto(flow.ProtoICMP, flow.Match{ICMPType: flow.Uint8(8), ICMPCode: flow.Uint8(0)}),
		"icmp code":       proto(flow.ProtoICMP, flow.Match{ICMPCode: flow.Uint8(3)}),
		"arp_op":          {EthType: flow.EthTypeARP, ARPOp: flow.ARPReply},
		"arp_spa":         {EthType: flow.EthTypeARP, ARPSPA: p32},
		"arp_tpa":         {EthType: flow.EthTypeARP, ARPTPA: p32},
		"arp prefixes":    {EthType: flow.EthTypeARP, ARPOp: flow.ARPRequest, ARPSPA: p24, ARPTPA: netip.MustParsePrefix("10.0.0.0/8")},
		"tun_id":          {TunID: flow.Uint64(0x65)},
		"tun_id 0":        {TunID: flow.Uint64(0)},
		"tun_id big":      {TunID: flow.Uint64(1<<63 + 5)},
		"ct_state":        ip(flow.Match{CTState: flow.Masked32{Value: flow.CTTrk | flow.CTEst, Mask: flow.CTTrk | flow.CTEst | flow.CTNew}}),
		"ct_state unset":  ip(flow.Match{CTState: flow.Masked32{Mask: flow.CTTrk}}),
		"ct_state no ip":  {CTState: flow.Masked32{Value: flow.CTTrk, Mask: flow.CTTrk}},
		"metadata":        {Metadata: flow.Masked64{Value: 5, Mask: ^uint64(0)}},
		"metadata masked": {Metadata: flow.Masked64{Value: 0x500, Mask: 0xff00}},
		"metadata 0":      {Metadata: flow.Masked64{Value: 0, Mask: ^uint64(0)}},
		"all of tcp": {InPort: flow.NumberedPort(2), EthSrc: m1, EthDst: m2, EthType: flow.EthTypeIPv4, VLAN: flow.VLANID(7), IPProto: flow.ProtoTCP, IPSrc: p24, IPDst: p32,
			TPSrc: flow.ExactPort(5), TPDst: flow.PortMask{Value: 8, Mask: 0xfff8}, TunID: flow.Uint64(9), CTState: flow.Masked32{Value: flow.CTTrk, Mask: flow.CTTrk}, Metadata: flow.Masked64{Value: 1, Mask: 0xf}},
		"all of arp": {InPort: flow.NumberedPort(2), EthSrc: m1, EthDst: m2, EthType: flow.EthTypeARP, VLAN: flow.NoVLAN, ARPOp: flow.ARPRequest, ARPSPA: p24, ARPTPA: p32, TunID: flow.Uint64(9)},
	}
	type do struct {
		match   flow.Match
		actions []flow.Action
	}
	dos := map[string]do{
		"output":           {flow.Match{}, []flow.Action{output(1)}},
		"output in_port":   {flow.Match{}, []flow.Action{flow.Output{Port: flow.InPort}}},
		"output normal":    {flow.Match{}, []flow.Action{flow.Output{Port: flow.Normal}}},
		"output local":     {flow.Match{}, []flow.Action{flow.Output{Port: flow.Local}}},
		"controller all":   {flow.Match{}, []flow.Action{flow.Output{Port: flow.Controller, MaxLen: 0xffff}}},
		"controller some":  {flow.Match{}, []flow.Action{flow.Output{Port: flow.Controller, MaxLen: 128}}},
		"controller none":  {flow.Match{}, []flow.Action{flow.Output{Port: flow.Controller}}},
		"group":            {flow.Match{}, []flow.Action{flow.ToGroup{ID: 0x6b000001}}},
		"twice":            {flow.Match{}, []flow.Action{output(1), output(2), output(1)}},
		"set macs":         {arp, []flow.Action{flow.SetMAC{Field: flow.FieldEthSrc, MAC: m1}, flow.SetMAC{Field: flow.FieldEthDst, MAC: m2}, flow.SetMAC{Field: flow.FieldARPSHA, MAC: m1}, flow.SetMAC{Field: flow.FieldARPTHA, MAC: m2}}},
		"set mac 0":        {arp, []flow.Action{flow.SetMAC{Field: flow.FieldARPTHA}}},
		"set ips":          {ip(flow.Match{}), []flow.Action{flow.SetIP{Field: flow.FieldIPSrc, IP: addr("1.2.3.4")}, flow.SetIP{Field: flow.FieldIPDst, IP: addr("255.255.255.255")}}},
		"set arp":          {arp, []flow.Action{flow.SetIP{Field: flow.FieldARPSPA, IP: addr("1.2.3.4")}, flow.SetIP{Field: flow.FieldARPTPA, IP: addr("0.0.0.0")}, flow.SetUint{Field: flow.FieldARPOp, Value: 2}}},
		"set tunnel":       {flow.Match{}, []flow.Action{flow.SetUint{Field: flow.FieldTunID, Value: 0xffffff}, flow.SetIP{Field: flow.FieldTunDst, IP: addr("10.1.0.11")}, output(1)}},
		"set tun_id 0":     {flow.Match{}, []flow.Action{flow.SetUint{Field: flow.FieldTunID}}},
		"set metadata":     {flow.Match{}, []flow.Action{flow.SetUint{Field: flow.FieldMetadata, Value: 1<<64 - 1}}},
		"set metadata 0":   {flow.Match{}, []flow.Action{flow.SetUint{Field: flow.FieldMetadata}}},
		"set vlan":         {tagged, []flow.Action{flow.SetUint{Field: flow.FieldVLANVID, Value: 5}}},
		"push vlan":        {flow.Match{}, []flow.Action{flow.PushVLAN{}, flow.SetUint{Field: flow.FieldVLANVID, Value: 300}, output(1)}},
		"push vlan only":   {flow.Match{}, []flow.Action{flow.PushVLAN{}}},
		"pop vlan":         {tagged, []flow.Action{flow.PopVLAN{}, output(1)}},
		"move eth":         {flow.Match{}, []flow.Action{flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst}}},
		"move ip":          {ip(flow.Match{}), []flow.Action{flow.Move{From: flow.FieldIPSrc, To: flow.FieldIPDst}}},
		"move arp":         {arp, []flow.Action{flow.Move{From: flow.FieldARPSHA, To: flow.FieldARPTHA}, flow.Move{From: flow.FieldARPSPA, To: flow.FieldARPTPA}}},
		"load ttl":         {ip(flow.Match{}), []flow.Action{flow.Load{Field: flow.FieldIPTTL, Value: 255}}},
		"load icmp_type":   {icmp, []flow.Action{flow.Load{Field: flow.FieldICMPType}}},
		"ct":               {ip(flow.Match{}), []flow.Action{flow.CT{}}},
		"ct commit":        {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true}, output(1)}},
		"ct zone":          {ip(flow.Match{}), []flow.Action{flow.CT{Zone: 65535, Table: 200}}},
		"ct commit table":  {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, Zone: 7, Table: 200}}},
		"ct nat":           {ip(flow.Match{}), []flow.Action{flow.CT{Table: 200, Zone: 1, NAT: nat(flow.NATKnown)}}},
		"ct nat src":       {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, NAT: nat(flow.NATSource)}}},
		"ct nat dst":       {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, NAT: nat(flow.NATDestination)}}},
		"ct nat src range": {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, NAT: ranged(flow.NATSource)}}},
		"ct nat dst range": {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, Table: 200, NAT: ranged(flow.NATDestination)}}},
		"ct nat src one":   {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, NAT: one(flow.NATSource)}}},
		"ct nat dst one":   {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, NAT: one(flow.NATDestination)}}},
		"ct nat port":      {ip(flow.Match{}), []flow.Action{flow.CT{Commit: true, NAT: onePort(flow.NATDestination)}}},
	}
	out := map[string]flow.Rule{}
	for name, m := range matches {
		out["match "+name] = flow.Rule{Match: m, Actions: []flow.Action{output(1)}}
	}
	for name, d := range dos {
		out["do "+name] = flow.Rule{Match: d.match, Actions: d.actions}
		out["do "+name+", goto"] = flow.Rule{Match: d.match, Actions: d.actions, Goto: 253}
	}
	out["drop"] = flow.Rule{Match: flow.Match{EthType: flow.EthTypeIPv4}}
	out["goto only"] = flow.Rule{Goto: 80}
	return out
}

// place gives each rule a table and a priority of its own.
func place(rules map[string]flow.Rule, d model.DPID) map[string]flow.Rule {
	out := map[string]flow.Rule{}
	for name, r := range rules {
		r.Switch, r.Table, r.Priority = d, uint8(len(out)%70), uint16(1000+len(out))
		out[name] = r
	}
	return out
}

func TestEveryRuleIsReadBackAsItWasSent(t *testing.T) {
	const d = 0x42
	ovs, _, s := real(t)

	g, err := openflow.AddGroup(flow.Group{ID: 0x6b000001, Type: flow.GroupSelect})
	if err != nil {
		t.Fatal(err)
	}
	msgs := []openflow.Message{g}
	rules := place(ruleKinds(), d)
	encoded := map[uint64]openflow.EncodedRule{}
	byCookie := map[uint64]string{}
	for name, r := range rules {
		e, err := openflow.EncodeRule(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cookie := flow.CookieMark | uint64(len(encoded))
		encoded[cookie], byCookie[cookie] = e, name
		msgs = append(msgs, openflow.AddFlow(e, cookie))
	}
	if err := s.Bundle(until(t), msgs); err != nil {
		t.Fatal(err)
	}

	entries, err := s.Flows(until(t), openflow.FlowQuery{Table: 0xff})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(rules) {
		t.Errorf("%d rules read, %d sent", len(entries), len(rules))
	}
	for _, got := range entries {
		name := byCookie[got.Cookie]
		want, e := rules[name], encoded[got.Cookie]
		if got.DecodeErr != nil || !reflect.DeepEqual(got.Rule, want) {
			t.Errorf("%s:\nread %v (%v)\nsent %v", name, got.Rule, got.DecodeErr, want)
		}
		if !bytes.Equal(got.InstructionBytes, e.Instructions) {
			t.Errorf("%s: instructions\nread %x\nsent %x", name, got.InstructionBytes, e.Instructions)
		}
		if got.Flags != 1 {
			t.Errorf("%s: flags %d", name, got.Flags)
		}
	}

	lines := map[string]bool{}
	for _, l := range ovs.Flows("br0") {
		r, err := flow.ParseRule(l)
		if err != nil {
			t.Errorf("ovs-ofctl writes %q: %v", l, err)
			continue
		}
		lines[r.String()] = true
	}
	for name, r := range rules {
		if !lines[r.String()] {
			t.Errorf("%s: ovs-ofctl doesn't show %s", name, r)
		}
	}

	// Each is deleted by its cookie, and then by its match.
	msgs = nil
	for cookie, e := range encoded {
		msgs = append(msgs, openflow.DeleteFlows(e.Table, cookie, ^uint64(0)))
	}
	if err := s.Bundle(until(t), msgs); err != nil {
		t.Fatal(err)
	}
	if left := ovs.Flows("br0"); len(left) != 0 {
		t.Errorf("left after deleting by cookie: %q", left)
	}
	msgs = nil
	for cookie, e := range encoded {
		msgs = append(msgs, openflow.AddFlow(e, cookie), openflow.DeleteStrict(e))
	}
	if err := s.Bundle(until(t), msgs); err != nil {
		t.Fatal(err)
	}
	if left := ovs.Flows("br0"); len(left) != 0 {
		t.Errorf("left after deleting by match: %q", left)
	}
}
