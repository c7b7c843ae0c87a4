package flow

import (
	"fmt"
	"net/netip"
)

// actionCheck checks the actions of a rule in order. Without a match (a bucket,
// whose packets come from any rule) it checks values only.
type actionCheck struct {
	match  *Match
	tagged bool // the packet has a VLAN tag at this point
}

func (c *actionCheck) check(a Action) error {
	switch a := a.(type) {
	case Output:
		return checkOutput(a)
	case ToGroup:
		if a.ID > maxPort {
			return fmt.Errorf("group id %d is reserved", a.ID)
		}
		return nil
	case SetMAC:
		return c.field(a.Field, kindMAC, false)
	case SetIP:
		if !a.IP.Is4() {
			return fmt.Errorf("%v is no IPv4 address", a.IP)
		}
		return c.field(a.Field, kindIPv4, false)
	case SetUint:
		return c.uint(a.Field, a.Value, false)
	case Load:
		return c.uint(a.Field, a.Value, true)
	case Move:
		return c.move(a)
	case PushVLAN:
		c.tagged = true
		return nil
	case PopVLAN:
		if c.match != nil && !c.tagged {
			return fmt.Errorf("there is no tag to remove")
		}
		c.tagged = false
		return nil
	case CT:
		return c.ct(a)
	case nil:
		return fmt.Errorf("the action is missing")
	}
	return fmt.Errorf("the action is unknown")
}

func checkOutput(a Output) error {
	if a.Port.IsZero() {
		return fmt.Errorf("the port is missing")
	}
	if a.MaxLen != 0 && a.Port != Controller {
		return fmt.Errorf("only output to the controller has a length")
	}
	return a.Port.validate()
}

// field checks that f has a value of that kind, is written the right way and is
// there in the packets of the match.
func (c *actionCheck) field(f Field, kind fieldKind, load bool) error {
	info, ok := fields[f]
	if !ok || info.kind != kind || info.load != load {
		return fmt.Errorf("field %q can't be written this way", f)
	}
	return c.present(f)
}

func (c *actionCheck) uint(f Field, v uint64, load bool) error {
	if err := c.field(f, kindUint, load); err != nil {
		return err
	}
	if v > fields[f].max {
		return fmt.Errorf("%d is too large for field %s", v, f)
	}
	return nil
}

// present checks that the packets of the match have field f.
func (c *actionCheck) present(f Field) error {
	if c.match == nil {
		return nil
	}
	ok, what := true, ""
	switch f {
	case FieldIPSrc, FieldIPDst:
		ok, what = c.match.EthType == EthTypeIPv4, "ip"
	case FieldIPTTL:
		ok, what = c.match.EthType == EthTypeIPv4 || c.match.EthType == EthTypeIPv6, "ip or ipv6"
	case FieldICMPType:
		ok, what = c.match.EthType == EthTypeIPv4 && c.match.IPProto == ProtoICMP, "icmp"
	case FieldARPOp, FieldARPSHA, FieldARPTHA, FieldARPSPA, FieldARPTPA:
		ok, what = c.match.EthType == EthTypeARP, "arp"
	case FieldVLANVID:
		ok, what = c.tagged, "a VLAN tag"
	}
	if !ok {
		return fmt.Errorf("field %s needs %s", f, what)
	}
	return nil
}

func (c *actionCheck) move(a Move) error {
	from, to := fields[a.From], fields[a.To]
	if from.nxm == "" || to.nxm == "" || from.load || to.load || from.kind != to.kind {
		return fmt.Errorf("field %q can't be moved to %q", a.From, a.To)
	}
	if err := c.present(a.From); err != nil {
		return err
	}
	return c.present(a.To)
}

func (c *actionCheck) ct(a CT) error {
	if m := c.match; m != nil && m.EthType != EthTypeIPv4 && m.EthType != EthTypeIPv6 {
		return fmt.Errorf("ct needs ip or ipv6")
	}
	if m := c.match; m != nil && a.Commit && m.CTState.Value&CTInv != 0 {
		return fmt.Errorf("an invalid packet can't be committed")
	}
	if a.Table > 254 {
		return fmt.Errorf("table 255 is no table")
	}
	n := a.NAT
	ranged := n != NAT{Kind: n.Kind}
	switch n.Kind {
	case NATNone, NATKnown:
		if ranged {
			return fmt.Errorf("only nat of source or destination has a range")
		}
		return nil
	case NATSource, NATDestination:
		if !a.Commit {
			return fmt.Errorf("nat of source or destination needs commit")
		}
	default:
		return fmt.Errorf("nat kind %d is unknown", n.Kind)
	}
	if !ranged {
		return nil
	}
	if !n.IPMin.Is4() || !n.IPMax.Is4() || n.IPMax.Less(n.IPMin) || n.IPMin == netip.IPv4Unspecified() {
		return fmt.Errorf("the addresses of nat are no IPv4 range from low to high")
	}
	if n.PortMax < n.PortMin || n.PortMin == 0 && n.PortMax != 0 {
		return fmt.Errorf("the ports of nat are no range from low to high")
	}
	return nil
}
