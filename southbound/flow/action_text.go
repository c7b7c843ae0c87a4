package flow

import (
	"fmt"
	"strconv"
	"strings"
)

// String implements Action.
func (a Output) String() string {
	switch {
	case a.Port == Controller:
		return "CONTROLLER:" + strconv.Itoa(int(a.MaxLen))
	case isReserved(a.Port):
		return a.Port.String()
	}
	return "output:" + a.Port.String()
}

func isReserved(p Port) bool {
	return p == InPort || p == Normal || p == Controller || p == Local
}

// String implements Action.
func (a ToGroup) String() string { return "group:" + strconv.FormatUint(uint64(a.ID), 10) }

// String implements Action.
func (a SetMAC) String() string { return setField(a.Field, a.MAC.String()) }

// String implements Action.
func (a SetIP) String() string { return setField(a.Field, a.IP.String()) }

// String implements Action.
func (a SetUint) String() string {
	v := a.Value
	if a.Field == FieldVLANVID {
		v |= vlanPresent
	}
	if fields[a.Field].hex {
		return setField(a.Field, hex(v))
	}
	return setField(a.Field, strconv.FormatUint(v, 10))
}

// vlanPresent is OFPVID_PRESENT, which the wire's VLAN ids carry.
const vlanPresent = 0x1000

func setField(f Field, value string) string { return "set_field:" + value + "->" + string(f) }

// String implements Action.
func (a Move) String() string {
	return "move:" + fields[a.From].nxm + "[]->" + fields[a.To].nxm + "[]"
}

// String implements Action.
func (a Load) String() string { return "load:" + hex(a.Value) + "->" + fields[a.Field].nxm + "[]" }

// String implements Action.
func (PopVLAN) String() string { return "pop_vlan" }

// String implements Action.
func (PushVLAN) String() string { return "push_vlan:0x8100" }

// String implements Action.
func (a CT) String() string {
	var parts []string
	if a.Commit {
		parts = append(parts, "commit")
	}
	if a.Table != 0 {
		parts = append(parts, fmt.Sprintf("table=%d", a.Table))
	}
	if a.Zone != 0 {
		parts = append(parts, fmt.Sprintf("zone=%d", a.Zone))
	}
	if a.NAT.Kind != NATNone {
		parts = append(parts, a.NAT.String())
	}
	return "ct(" + strings.Join(parts, ",") + ")"
}

// String writes n as ovs-ofctl writes a nat action within ct.
func (n NAT) String() string {
	var b strings.Builder
	switch n.Kind {
	case NATNone:
		return ""
	case NATKnown:
		return "nat"
	case NATSource:
		b.WriteString("nat(src")
	case NATDestination:
		b.WriteString("nat(dst")
	}
	if n.IPMin.IsValid() {
		b.WriteString("=" + n.IPMin.String())
		if n.IPMax.IsValid() && n.IPMax != n.IPMin {
			b.WriteString("-" + n.IPMax.String())
		}
		if n.PortMin != 0 {
			fmt.Fprintf(&b, ":%d", n.PortMin)
			if n.PortMax != 0 && n.PortMax != n.PortMin {
				fmt.Fprintf(&b, "-%d", n.PortMax)
			}
		}
	}
	return b.String() + ")"
}
