package flow

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// String writes r in the grammar of ovs-ofctl, the match fields in the order of
// `ovs-ofctl dump-flows`. Switch and Announce are no part of the text.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table=%d,priority=%d", r.Table, r.Priority)
	if m := r.Match.String(); m != "" {
		b.WriteString("," + m)
	}
	b.WriteString(",actions=")
	b.WriteString(instructions(r.Actions, r.Goto))
	return b.String()
}

// instructions writes actions and the table to go on in.
func instructions(actions []Action, table uint8) string {
	parts := make([]string, 0, len(actions)+1)
	for _, a := range actions {
		parts = append(parts, a.String())
	}
	if table != 0 {
		parts = append(parts, "goto_table:"+strconv.Itoa(int(table)))
	}
	if len(parts) == 0 {
		return "drop"
	}
	return strings.Join(parts, ",")
}

// String writes m as ovs-ofctl does; the match of any packet is empty.
func (m Match) String() string {
	var w fieldWriter
	if m.CTState.Mask != 0 {
		w.add("ct_state", m.CTState.flags())
	}
	shorthand := m.shorthand()
	if shorthand != "" {
		w.parts = append(w.parts, shorthand)
	}
	if m.TunID.Set {
		w.add("tun_id", hex(m.TunID.Value))
	}
	if m.Metadata.Mask != 0 {
		w.add("metadata", m.Metadata.text())
	}
	if !m.InPort.IsZero() {
		w.add("in_port", m.InPort.String())
	}
	w.vlan(m.VLAN)
	if !m.EthSrc.IsZero() {
		w.add("dl_src", m.EthSrc.String())
	}
	if !m.EthDst.IsZero() {
		w.add("dl_dst", m.EthDst.String())
	}
	if shorthand == "" && m.EthType != 0 {
		w.add("dl_type", fmt.Sprintf("0x%04x", m.EthType))
	}
	w.prefix("nw_src", m.IPSrc)
	w.prefix("nw_dst", m.IPDst)
	w.prefix("arp_spa", m.ARPSPA)
	w.prefix("arp_tpa", m.ARPTPA)
	if m.ARPOp != 0 {
		w.add("arp_op", strconv.Itoa(int(m.ARPOp)))
	}
	if m.IPProto != 0 && protoNames[m.IPProto] == "" {
		w.add("nw_proto", strconv.Itoa(int(m.IPProto)))
	}
	w.port("tp_src", m.TPSrc)
	w.port("tp_dst", m.TPDst)
	w.optUint8("icmp_type", m.ICMPType)
	w.optUint8("icmp_code", m.ICMPCode)
	return strings.Join(w.parts, ",")
}

// protoNames are the IP protocols that ovs-ofctl has a shorthand for.
var protoNames = map[uint8]string{ProtoICMP: "icmp", ProtoTCP: "tcp", ProtoUDP: "udp", ProtoSCTP: "sctp"}

// shorthand is the word that stands for the Ethernet type, with the IP protocol
// where there is a word for both.
func (m Match) shorthand() string {
	switch m.EthType {
	case EthTypeIPv4:
		if n := protoNames[m.IPProto]; n != "" {
			return n
		}
		return "ip"
	case EthTypeARP:
		return "arp"
	case EthTypeIPv6:
		return "ipv6"
	}
	return ""
}

// fieldWriter collects the fields of a match.
type fieldWriter struct{ parts []string }

func (w *fieldWriter) add(name, value string) { w.parts = append(w.parts, name+"="+value) }

func (w *fieldWriter) vlan(v VLAN) {
	if v == NoVLAN {
		w.add("vlan_tci", noVLANText)
	} else if id, ok := v.ID(); ok {
		w.add("dl_vlan", strconv.Itoa(int(id)))
	}
}

// noVLANText is how Open vSwitch writes the match of packets without a tag.
const noVLANText = "0x0000/0x1fff"

func (w *fieldWriter) prefix(name string, p netip.Prefix) {
	switch {
	case !p.IsValid():
	case p.IsSingleIP():
		w.add(name, p.Addr().String())
	default:
		w.add(name, p.String())
	}
}

func (w *fieldWriter) port(name string, p PortMask) {
	switch p.Mask {
	case 0:
	case 0xffff:
		w.add(name, strconv.Itoa(int(p.Value)))
	default:
		w.add(name, fmt.Sprintf("0x%x/0x%x", p.Value, p.Mask))
	}
}

func (w *fieldWriter) optUint8(name string, o OptUint8) {
	if o.Set {
		w.add(name, strconv.Itoa(int(o.Value)))
	}
}

// hex writes x as C's %#x does: zero without prefix.
func hex(x uint64) string {
	if x == 0 {
		return "0"
	}
	return "0x" + strconv.FormatUint(x, 16)
}

func (m Masked64) text() string {
	if m.Mask == 1<<64-1 {
		return hex(m.Value)
	}
	return hex(m.Value) + "/" + hex(m.Mask)
}

// ctStateNames are the names of the bits of CTState, lowest first.
var ctStateNames = []string{"new", "est", "rel", "rpl", "inv", "trk"}

func (m Masked32) flags() string {
	var b strings.Builder
	for i, name := range ctStateNames {
		switch bit := uint32(1) << i; {
		case m.Mask&bit == 0:
		case m.Value&bit != 0:
			b.WriteString("+" + name)
		default:
			b.WriteString("-" + name)
		}
	}
	return b.String()
}

// String writes g as ovs-ofctl reads it, with the weights of a select group
// always written out. Switch is no part of the text.
func (g Group) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group_id=%d,type=%s", g.ID, g.Type)
	for _, k := range g.Buckets {
		b.WriteString(",bucket=")
		if g.Type == GroupSelect || k.Weight != 0 {
			fmt.Fprintf(&b, "weight:%d,", k.Weight)
		}
		b.WriteString("actions=" + instructions(k.Actions, 0))
	}
	return b.String()
}

// groupTypeNames are the names that ovs-ofctl gives to group types.
var groupTypeNames = map[GroupType]string{GroupAll: "all", GroupSelect: "select"}

// String names the type as ovs-ofctl does.
func (t GroupType) String() string {
	if n, ok := groupTypeNames[t]; ok {
		return n
	}
	return strconv.Itoa(int(t))
}
