package flow

import (
	"fmt"
	"net/netip"
)

// maxPort is OFPP_MAX: the largest number of a physical or logical port.
const maxPort = 0xffffff00

// Validate tells whether a switch can take r: whether values are in range and
// each field stands with the fields that it needs. Ports may be names.
func (r Rule) Validate() error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("rule %s: %w", r, err)
	}
	return nil
}

func (r Rule) validate() error {
	if r.Table > 254 {
		return fmt.Errorf("table 255 is no table")
	}
	if r.Goto != 0 && (r.Goto <= r.Table || r.Goto > 254) {
		return fmt.Errorf("goto_table:%d doesn't lead to a later table", r.Goto)
	}
	if err := r.Match.Validate(); err != nil {
		return err
	}
	_, tagged := r.Match.VLAN.ID()
	c := actionCheck{match: &r.Match, tagged: tagged}
	for _, a := range r.Actions {
		if err := c.check(a); err != nil {
			return fmt.Errorf("%T: %w", a, err)
		}
	}
	return nil
}

// Validate tells whether a switch can take g.
func (g Group) Validate() error {
	if g.ID > maxPort {
		return fmt.Errorf("group %d: the id is reserved", g.ID)
	}
	if _, ok := groupTypeNames[g.Type]; !ok {
		return fmt.Errorf("group %d: type %d is not used", g.ID, g.Type)
	}
	for i, b := range g.Buckets {
		if g.Type != GroupSelect && b.Weight != 0 {
			return fmt.Errorf("group %d: bucket %d: only buckets of a select group have a weight", g.ID, i)
		}
		c := actionCheck{}
		for _, a := range b.Actions {
			if err := c.check(a); err != nil {
				return fmt.Errorf("group %d: bucket %d: %T: %w", g.ID, i, a, err)
			}
		}
	}
	return nil
}

// Validate tells whether a switch can take m.
func (m Match) Validate() error {
	ip, arp := m.EthType == EthTypeIPv4, m.EthType == EthTypeARP
	ports := ip && (m.IPProto == ProtoTCP || m.IPProto == ProtoUDP || m.IPProto == ProtoSCTP)
	icmp := ip && m.IPProto == ProtoICMP
	needs := []struct {
		set, ok    bool
		name, what string
	}{
		{m.IPProto != 0, ip, "nw_proto", "ip"},
		{m.IPSrc != netip.Prefix{}, ip, "nw_src", "ip"},
		{m.IPDst != netip.Prefix{}, ip, "nw_dst", "ip"},
		{m.TPSrc != PortMask{}, ports, "tp_src", "tcp, udp or sctp"},
		{m.TPDst != PortMask{}, ports, "tp_dst", "tcp, udp or sctp"},
		{m.ICMPType != OptUint8{}, icmp, "icmp_type", "icmp"},
		{m.ICMPCode != OptUint8{}, icmp, "icmp_code", "icmp"},
		{m.ARPOp != 0, arp, "arp_op", "arp"},
		{m.ARPSPA != netip.Prefix{}, arp, "arp_spa", "arp"},
		{m.ARPTPA != netip.Prefix{}, arp, "arp_tpa", "arp"},
	}
	for _, n := range needs {
		if n.set && !n.ok {
			return fmt.Errorf("%s needs %s", n.name, n.what)
		}
	}
	return m.validateValues()
}

func (m Match) validateValues() error {
	if err := m.InPort.validate(); err != nil {
		return fmt.Errorf("in_port: %w", err)
	}
	if m.InPort == InPort || m.InPort == Normal {
		return fmt.Errorf("in_port: no packet comes from %s", m.InPort)
	}
	if m.VLAN != 0 && m.VLAN != NoVLAN && m.VLAN&^0xfff != 0x1000 {
		return fmt.Errorf("VLAN %#x is neither made by VLANID nor NoVLAN", uint16(m.VLAN))
	}
	for _, f := range [...]struct {
		name string
		p    netip.Prefix
	}{{"nw_src", m.IPSrc}, {"nw_dst", m.IPDst}, {"arp_spa", m.ARPSPA}, {"arp_tpa", m.ARPTPA}} {
		if p := f.p; (p != netip.Prefix{}) && (!p.IsValid() || !p.Addr().Is4() || p.Bits() == 0 || p != p.Masked()) {
			return fmt.Errorf("%s: %v is no IPv4 prefix without host bits", f.name, p)
		}
	}
	switch {
	case m.ARPOp > 0xff:
		return fmt.Errorf("arp_op: Open vSwitch knows no operation above 255")
	case m.TPSrc.Value&^m.TPSrc.Mask != 0, m.TPDst.Value&^m.TPDst.Mask != 0:
		return fmt.Errorf("a transport port has bits outside of its mask")
	case m.CTState.Value&^m.CTState.Mask != 0, m.CTState.Mask>>len(ctStateNames) != 0:
		return fmt.Errorf("ct_state has bits outside of its mask or unknown bits")
	case m.Metadata.Value&^m.Metadata.Mask != 0:
		return fmt.Errorf("metadata has bits outside of its mask")
	case !m.TunID.Set && m.TunID.Value != 0, !m.ICMPType.Set && m.ICMPType.Value != 0, !m.ICMPCode.Set && m.ICMPCode.Value != 0:
		return fmt.Errorf("an absent field has a value")
	}
	return nil
}

func (p Port) validate() error {
	switch {
	case p.Name != "" && p.Number != 0:
		return fmt.Errorf("port %q has a number too", p.Name)
	case p.Number > maxPort && !isReserved(p):
		return fmt.Errorf("port %d is reserved", p.Number)
	}
	return nil
}
