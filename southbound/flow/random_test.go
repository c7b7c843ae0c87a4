package flow

import (
	"net/netip"

	"pgregory.net/rapid"

	"kvnet/model"
)

// The generators draw rules and groups that Validate accepts.

func drawMAC(t *rapid.T, label string) (m model.MAC) {
	copy(m[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, label))
	m[5] |= 1
	return m
}

func drawIPv4(t *rapid.T, label string) netip.Addr {
	b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, label)
	b[0] |= 1
	return netip.AddrFrom4([4]byte(b))
}

func drawPrefix(t *rapid.T, label string) netip.Prefix {
	if rapid.Bool().Draw(t, label+" any") {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(drawIPv4(t, label), rapid.IntRange(1, 32).Draw(t, label+" length")).Masked()
}

func drawPort(t *rapid.T, named bool) Port {
	if named && rapid.Bool().Draw(t, "named") {
		return NamedPort(rapid.StringN(1, 15, -1).Draw(t, "port name"))
	}
	return NumberedPort(rapid.Uint32Range(1, 0xfeff).Draw(t, "port"))
}

func drawPortMask(t *rapid.T, label string) PortMask {
	mask := rapid.SampledFrom([]uint16{0, 0xffff, 0xfffc, 0xff00, 0x8000}).Draw(t, label+" mask")
	return PortMask{rapid.Uint16().Draw(t, label) & mask, mask}
}

func drawOptUint8(t *rapid.T, label string) OptUint8 {
	if rapid.Bool().Draw(t, label+" any") {
		return OptUint8{}
	}
	return Uint8(rapid.Byte().Draw(t, label))
}

func drawMatch(t *rapid.T, named bool) Match {
	var m Match
	if rapid.Bool().Draw(t, "in_port") {
		m.InPort = drawPort(t, named)
	}
	if rapid.Bool().Draw(t, "dl_src") {
		m.EthSrc = drawMAC(t, "dl_src")
	}
	if rapid.Bool().Draw(t, "dl_dst") {
		m.EthDst = drawMAC(t, "dl_dst")
	}
	m.VLAN = rapid.SampledFrom([]VLAN{0, NoVLAN, VLANID(1), VLANID(100), VLANID(4094)}).Draw(t, "vlan")
	if rapid.Bool().Draw(t, "tun_id") {
		m.TunID = Uint64(rapid.Uint64().Draw(t, "tun_id"))
	}
	m.CTState.Mask = rapid.SampledFrom([]uint32{0, CTTrk, CTTrk | CTEst, 0x3f}).Draw(t, "ct mask")
	m.CTState.Value = rapid.SampledFrom([]uint32{0, CTTrk, CTTrk | CTEst, 0x3f}).Draw(t, "ct value") & m.CTState.Mask
	m.Metadata.Mask = rapid.SampledFrom([]uint64{0, 1<<64 - 1, 0xff}).Draw(t, "metadata mask")
	m.Metadata.Value = rapid.Uint64().Draw(t, "metadata") & m.Metadata.Mask
	m.EthType = rapid.SampledFrom([]uint16{0, EthTypeIPv4, EthTypeARP, EthTypeIPv6, EthTypeVLAN, 0x88cc}).Draw(t, "dl_type")
	if m.VLAN != 0 && m.EthType == EthTypeVLAN {
		m.EthType = 0
	}
	switch m.EthType {
	case EthTypeIPv4:
		m.IPSrc, m.IPDst = drawPrefix(t, "nw_src"), drawPrefix(t, "nw_dst")
		m.IPProto = rapid.SampledFrom([]uint8{0, ProtoICMP, ProtoTCP, ProtoUDP, ProtoSCTP, 47}).Draw(t, "nw_proto")
		switch m.IPProto {
		case ProtoTCP, ProtoUDP, ProtoSCTP:
			m.TPSrc, m.TPDst = drawPortMask(t, "tp_src"), drawPortMask(t, "tp_dst")
		case ProtoICMP:
			m.ICMPType, m.ICMPCode = drawOptUint8(t, "icmp_type"), drawOptUint8(t, "icmp_code")
		}
	case EthTypeARP:
		m.ARPSPA, m.ARPTPA = drawPrefix(t, "arp_spa"), drawPrefix(t, "arp_tpa")
		m.ARPOp = rapid.Uint16Range(0, 255).Draw(t, "arp_op")
	}
	return m
}

func drawNAT(t *rapid.T) NAT {
	n := NAT{Kind: rapid.SampledFrom([]NATKind{NATSource, NATDestination}).Draw(t, "nat")}
	if rapid.Bool().Draw(t, "nat without range") {
		return n
	}
	n.IPMin, n.IPMax = drawIPv4(t, "nat low"), drawIPv4(t, "nat high")
	if n.IPMax.Less(n.IPMin) {
		n.IPMax = n.IPMin
	}
	if rapid.Bool().Draw(t, "nat ports") {
		n.PortMin = rapid.Uint16Range(1, 65535).Draw(t, "nat low port")
		n.PortMax = rapid.Uint16Range(n.PortMin, 65535).Draw(t, "nat high port")
	}
	return n
}

func drawCT(t *rapid.T) CT {
	c := CT{
		Commit: rapid.Bool().Draw(t, "commit"),
		Zone:   rapid.Uint16().Draw(t, "zone"),
		Table:  rapid.Uint8Range(0, 254).Draw(t, "ct table"),
	}
	switch {
	case rapid.Bool().Draw(t, "no nat"):
	case c.Commit && rapid.Bool().Draw(t, "nat with range"):
		c.NAT = drawNAT(t)
	default:
		c.NAT.Kind = NATKnown
	}
	return c
}

// drawAction draws an action that packets of m can take; m nil: of a bucket.
func drawAction(t *rapid.T, m *Match, named bool) Action {
	mac := rapid.Custom(func(t *rapid.T) model.MAC { return drawMAC(t, "set mac") })
	ip := rapid.Custom(func(t *rapid.T) netip.Addr { return drawIPv4(t, "set ip") })
	tracked := drawCT(t)
	if m != nil && m.CTState.Value&CTInv != 0 {
		tracked = CT{}
	}
	choices := []Action{
		Output{Port: drawPort(t, named)},
		Output{Port: rapid.SampledFrom([]Port{InPort, Normal, Local}).Draw(t, "reserved port")},
		Output{Port: Controller, MaxLen: rapid.Uint16().Draw(t, "max_len")},
		ToGroup{rapid.Uint32Range(0, maxPort).Draw(t, "group")},
		SetMAC{FieldEthSrc, mac.Draw(t, "eth")}, SetMAC{FieldEthDst, mac.Draw(t, "eth")},
		SetIP{FieldTunDst, ip.Draw(t, "tun_dst")},
		SetUint{FieldTunID, rapid.Uint64().Draw(t, "set tun_id")}, SetUint{FieldMetadata, rapid.Uint64().Draw(t, "set metadata")},
		Move{FieldEthSrc, FieldEthDst},
	}
	switch {
	case m == nil:
	case m.EthType == EthTypeIPv4:
		choices = append(choices, SetIP{FieldIPSrc, ip.Draw(t, "ip_src")}, SetIP{FieldIPDst, ip.Draw(t, "ip_dst")},
			Move{FieldIPSrc, FieldIPDst}, Load{FieldIPTTL, uint64(rapid.Byte().Draw(t, "ttl"))}, tracked)
		if m.IPProto == ProtoICMP {
			choices = append(choices, Load{FieldICMPType, uint64(rapid.Byte().Draw(t, "load type"))})
		}
	case m.EthType == EthTypeARP:
		choices = append(choices, SetMAC{FieldARPSHA, mac.Draw(t, "sha")}, SetMAC{FieldARPTHA, mac.Draw(t, "tha")},
			SetIP{FieldARPSPA, ip.Draw(t, "spa")}, SetIP{FieldARPTPA, ip.Draw(t, "tpa")},
			SetUint{FieldARPOp, uint64(rapid.Byte().Draw(t, "op"))},
			Move{FieldARPSHA, FieldARPTHA}, Move{FieldARPSPA, FieldARPTPA}, Move{FieldEthSrc, FieldARPTHA})
	}
	return rapid.SampledFrom(choices).Draw(t, "action")
}

func drawActions(t *rapid.T, m *Match, named bool) (actions []Action) {
	if m != nil {
		_, tagged := m.VLAN.ID()
		switch {
		case tagged && rapid.Bool().Draw(t, "pop"):
			actions = append(actions, PopVLAN{})
		case rapid.Bool().Draw(t, "push"):
			actions = append(actions, PushVLAN{}, SetUint{FieldVLANVID, uint64(rapid.IntRange(0, 0xfff).Draw(t, "vid"))})
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "actions") {
		actions = append(actions, drawAction(t, m, named))
	}
	return actions
}

// drawRule draws a rule that a switch can take. named: ports may be names.
func drawRule(t *rapid.T, named bool) Rule {
	r := Rule{
		Table:    rapid.Uint8Range(0, 250).Draw(t, "table"),
		Priority: rapid.Uint16().Draw(t, "priority"),
		Match:    drawMatch(t, named),
	}
	r.Actions = drawActions(t, &r.Match, named)
	if rapid.Bool().Draw(t, "goes on") {
		r.Goto = rapid.Uint8Range(r.Table+1, 254).Draw(t, "goto")
	}
	return r
}

func drawGroup(t *rapid.T, named bool) Group {
	g := Group{
		ID:   rapid.Uint32Range(0, maxPort).Draw(t, "id"),
		Type: rapid.SampledFrom([]GroupType{GroupAll, GroupSelect}).Draw(t, "type"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "buckets") {
		var b Bucket
		if g.Type == GroupSelect {
			b.Weight = rapid.Uint16Range(0, 100).Draw(t, "weight")
		}
		b.Actions = drawActions(t, nil, named)
		g.Buckets = append(g.Buckets, b)
	}
	return g
}
