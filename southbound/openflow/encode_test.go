package openflow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

func mac(s string) model.MAC {
	m, err := model.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

func hostOf(s string) netip.Prefix { return flow.Host(netip.MustParseAddr(s)) }

func out(n uint32) flow.Action { return flow.Output{Port: flow.NumberedPort(n)} }

var (
	routerMAC = mac("fa:00:00:00:00:0a")
	kubevirt  = mac("fe:00:00:00:00:02")
	inPort    = flow.Output{Port: flow.InPort}
	snat      = flow.NAT{Kind: flow.NATSource, IPMin: netip.MustParseAddr("172.16.0.100"), IPMax: netip.MustParseAddr("172.16.0.100"), PortMin: 1025, PortMax: 65535}
)

// examples are the rules of testdata/messages.txt.
var examples = map[string]flow.Rule{
	"snat-upstream": {Table: 31, Priority: 40500, Match: flow.Match{EthDst: routerMAC, EthType: flow.EthTypeIPv4}, Actions: []flow.Action{
		flow.CT{Commit: true, NAT: snat}, flow.SetMAC{Field: flow.FieldEthDst, MAC: mac("52:54:00:aa:bb:01")},
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: kubevirt}, out(11)}},
	"snat-downstream": {Table: 31, Priority: 40500, Match: flow.Match{EthType: flow.EthTypeIPv4, IPDst: hostOf("172.16.0.100")}, Actions: []flow.Action{
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: routerMAC}, flow.CT{Table: 32, NAT: flow.NAT{Kind: flow.NATKnown}}}},
	"snat-downstream-vlan": {Table: 31, Priority: 40500, Match: flow.Match{EthType: flow.EthTypeIPv4, VLAN: flow.VLANID(100), IPDst: hostOf("172.16.0.101")}, Actions: []flow.Action{
		flow.PopVLAN{}, flow.SetMAC{Field: flow.FieldEthSrc, MAC: routerMAC}, flow.CT{Table: 32, NAT: flow.NAT{Kind: flow.NATKnown}}}},
	"snat-port": {Table: 32, Priority: 40500, Match: flow.Match{EthSrc: routerMAC, EthType: flow.EthTypeIPv4, IPDst: hostOf("10.10.0.11")},
		Actions: []flow.Action{flow.SetMAC{Field: flow.FieldEthDst, MAC: mac("fa:16:3e:00:00:11")}}, Goto: 80},
	"tunnel-set": {Priority: 33000, Match: flow.Match{EthDst: mac("fa:16:3e:00:00:11"), EthType: flow.EthTypeIPv4, IPDst: hostOf("10.10.0.11")}, Actions: []flow.Action{
		flow.SetUint{Field: flow.FieldTunID, Value: 1000}, flow.SetIP{Field: flow.FieldTunDst, IP: netip.MustParseAddr("10.0.0.1")}, out(1)}},
	"arp-responder": {Table: 31, Priority: 41000, Match: flow.Match{InPort: flow.NumberedPort(11), EthType: flow.EthTypeARP, ARPOp: flow.ARPRequest, ARPTPA: hostOf("172.16.0.100")}, Actions: []flow.Action{
		flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst}, flow.Move{From: flow.FieldARPSHA, To: flow.FieldARPTHA}, flow.Move{From: flow.FieldARPSPA, To: flow.FieldARPTPA},
		flow.SetUint{Field: flow.FieldARPOp, Value: 2}, flow.SetMAC{Field: flow.FieldEthSrc, MAC: kubevirt}, flow.SetMAC{Field: flow.FieldARPSHA, MAC: kubevirt},
		flow.SetIP{Field: flow.FieldARPSPA, IP: netip.MustParseAddr("172.16.0.100")}, inPort}},
	"icmp-responder": {Table: 31, Priority: 43000, Match: flow.Match{EthType: flow.EthTypeIPv4, IPProto: flow.ProtoICMP, IPDst: hostOf("192.168.10.1"), ICMPType: flow.Uint8(8), ICMPCode: flow.Uint8(0)}, Actions: []flow.Action{
		flow.Move{From: flow.FieldEthSrc, To: flow.FieldEthDst}, flow.Move{From: flow.FieldIPSrc, To: flow.FieldIPDst},
		flow.Load{Field: flow.FieldIPTTL, Value: 255}, flow.Load{Field: flow.FieldICMPType}, flow.SetIP{Field: flow.FieldIPSrc, IP: netip.MustParseAddr("192.168.10.1")},
		flow.SetMAC{Field: flow.FieldEthSrc, MAC: routerMAC}, inPort}},
	"lb-downstream": {Table: 32, Priority: 41500, Match: flow.Match{EthType: flow.EthTypeIPv4, IPProto: flow.ProtoTCP, IPDst: hostOf("10.10.0.200"), TPDst: flow.ExactPort(80)},
		Actions: []flow.Action{flow.SetMAC{Field: flow.FieldEthSrc, MAC: routerMAC}, flow.ToGroup{ID: 0x1a2b3c4d}}},
	"ct-hook": {Table: 44, Priority: 30500, Match: flow.Match{EthType: flow.EthTypeIPv4, CTState: flow.Masked32{Mask: flow.CTTrk}},
		Actions: []flow.Action{flow.CT{Table: 45}}},
	"ct-drop": {Table: 45, Priority: 32500, Match: flow.Match{EthType: flow.EthTypeIPv4, CTState: flow.Masked32{Value: flow.CTTrk | flow.CTNew, Mask: flow.CTTrk | flow.CTNew}}},
	"punt": {Table: 5, Priority: 42000, Match: flow.Match{EthType: flow.EthTypeIPv4, IPProto: flow.ProtoUDP, TPSrc: flow.ExactPort(68), TPDst: flow.ExactPort(67)},
		Actions: []flow.Action{flow.Output{Port: flow.Controller, MaxLen: 0xffff}}},
}

func exampleMessages(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		if name, hexa, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			if out[name], err = hex.DecodeString(hexa); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return out
}

func TestMessagesAreTheBytesThatOpenVSwitchAccepts(t *testing.T) {
	buckets := []flow.Bucket{
		{Weight: 1, Actions: []flow.Action{flow.SetMAC{Field: flow.FieldEthDst, MAC: mac("fa:16:3e:00:00:11")}, flow.SetIP{Field: flow.FieldIPDst, IP: netip.MustParseAddr("10.10.0.11")}, flow.Output{Port: flow.Normal}}},
		{Weight: 1, Actions: []flow.Action{flow.SetMAC{Field: flow.FieldEthDst, MAC: mac("fa:16:3e:00:00:12")}, flow.SetIP{Field: flow.FieldIPDst, IP: netip.MustParseAddr("10.10.0.12")}, flow.Output{Port: flow.Normal}}},
	}
	want := exampleMessages(t)
	got := map[string]Message{
		"group-add-empty":        must(AddGroup(flow.Group{ID: 0x1a2b3c4d, Type: flow.GroupSelect})),
		"group-modify-2-buckets": must(ModifyGroup(flow.Group{ID: 0x1a2b3c4d, Type: flow.GroupSelect, Buckets: buckets})),
		"garp-packet-out":        must(PacketOut(flow.NumberedPort(11), want["garp-packet-out"][40:])),
		"arp-request-packet-out": must(PacketOut(flow.NumberedPort(11), want["arp-request-packet-out"][40:])),
	}
	for name, r := range examples {
		e, err := EncodeRule(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got[name] = AddFlow(e, 0)
	}
	for name, w := range want {
		m, ok := got[name]
		if !ok {
			t.Errorf("%s isn't tested", name)
			continue
		}
		if b := appendMessage(nil, 1, m); !bytes.Equal(b, w) {
			t.Errorf("%s:\n got %x\nwant %x", name, b, w)
		}
	}
}

func TestRulesThatCantBeSentAreRefused(t *testing.T) {
	var many []flow.Action
	for range 5000 {
		many = append(many, flow.Output{Port: flow.NumberedPort(1)})
	}
	for name, r := range map[string]flow.Rule{
		"a port to match is a name":       {Match: flow.Match{InPort: flow.NamedPort("p")}},
		"a port to send to is a name":     {Actions: []flow.Action{flow.Output{Port: flow.NamedPort("p")}}},
		"an IP field without its type":    {Match: flow.Match{IPSrc: hostOf("10.0.0.1")}},
		"a TCP port without the protocol": {Match: flow.Match{EthType: flow.EthTypeIPv4, TPDst: flow.ExactPort(80)}},
		"a prefix with host bits":         {Match: flow.Match{EthType: flow.EthTypeIPv4, IPSrc: netip.MustParsePrefix("10.0.0.1/24")}},
		"a VLAN id out of range":          {Match: flow.Match{VLAN: flow.VLANID(1)}, Actions: []flow.Action{flow.SetUint{Field: flow.FieldVLANVID, Value: 4096}}},
		"a goto backwards":                {Table: 5, Goto: 4},
		"an action is missing":            {Actions: []flow.Action{nil}},
		"a move that isn't known":         {Match: flow.Match{EthType: flow.EthTypeIPv4}, Actions: []flow.Action{flow.Move{From: flow.FieldIPDst, To: flow.FieldIPSrc}}},
		"too many actions":                {Actions: many},
	} {
		if _, err := EncodeRule(r); err == nil {
			t.Errorf("%s: no error", name)
		} else if name == "too many actions" && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooLargeMessagesAreRefusedBeforeTheyAreSent(t *testing.T) {
	g := flow.Group{ID: 1, Type: flow.GroupSelect}
	for range 2100 {
		g.Buckets = append(g.Buckets, flow.Bucket{Weight: 1, Actions: []flow.Action{out(1)}})
	}
	if _, err := AddGroup(g); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a group of %d buckets: %v", len(g.Buckets), err)
	}
	if _, err := PacketOut(flow.NumberedPort(1), make([]byte, 65536)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a frame of 65536 bytes: %v", err)
	}
	m, err := PacketOut(flow.NumberedPort(1), make([]byte, maxMessage-packetOutFixedLen))
	if err != nil || m.Len() != maxMessage {
		t.Fatalf("the largest frame: %v, %d bytes", err, m.Len())
	}
	if b := appendBundleAdd(nil, 1, 1, m); len(b) != 65535 {
		t.Errorf("the largest message doesn't fill a message of a bundle: %d bytes", len(b))
	}
}

func TestDeletesHaveNoMoreBytesThanTheySay(t *testing.T) {
	e, err := EncodeRule(examples["arp-responder"])
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]Message{
		"strict": DeleteStrict(e), "by cookie": DeleteFlows(3, 1, ^uint64(0)), "group": DeleteGroup(7),
	} {
		h, err := wire.ParseHeader(m.bytes)
		if err != nil || int(h.Length) != len(m.bytes) {
			t.Errorf("%s: header %+v, %d bytes", name, h, len(m.bytes))
		}
	}
}

func TestAPanicOfTheLibraryIsAnError(t *testing.T) {
	if _, err := marshal("thing", panicker{}); err == nil || !strings.Contains(err.Error(), "thing") {
		t.Fatalf("error %v", err)
	}
}

type panicker struct{}

func (panicker) MarshalBinary() ([]byte, error) { panic("boom") }
