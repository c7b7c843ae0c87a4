package flow

import (
	"fmt"
	"net/netip"
	"strings"

	"kvnet/model"
)

// parseAction reads one action as Action.String and ovs-ofctl write it.
func parseAction(w string) (Action, error) {
	switch w {
	case "IN_PORT":
		return Output{Port: InPort}, nil
	case "NORMAL":
		return Output{Port: Normal}, nil
	case "LOCAL":
		return Output{Port: Local}, nil
	case "CONTROLLER":
		return Output{Port: Controller, MaxLen: 0xffff}, nil
	case "pop_vlan", "strip_vlan":
		return PopVLAN{}, nil
	case "push_vlan:0x8100":
		return PushVLAN{}, nil
	case "ct":
		return CT{}, nil
	}
	if in, ok := strings.CutPrefix(w, "ct("); ok {
		if in, ok = strings.CutSuffix(in, ")"); ok {
			return parseCT(in)
		}
	}
	name, arg, _ := strings.Cut(w, ":")
	switch name {
	case "output":
		return parseOutput(arg)
	case "CONTROLLER":
		n, err := number[uint16](arg)
		return Output{Port: Controller, MaxLen: n}, err
	case "group":
		id, err := number[uint32](arg)
		return ToGroup{id}, err
	case "set_field":
		return parseSetField(arg)
	case "move":
		return parseMove(arg)
	case "load":
		return parseLoad(arg)
	}
	return nil, fmt.Errorf("it is no action that kvnet knows")
}

func parseOutput(arg string) (Action, error) {
	p, err := parsePort(arg)
	if err != nil {
		return nil, err
	}
	o := Output{Port: p}
	if p == Controller {
		o.MaxLen = 0xffff
	}
	return o, nil
}

// cutArrow cuts the two operands of set_field, move and load.
func cutArrow(s string) (from, to string, err error) {
	from, to, ok := strings.Cut(s, "->")
	if !ok {
		return "", "", fmt.Errorf("-> is missing")
	}
	return from, to, nil
}

func parseSetField(arg string) (Action, error) {
	value, to, err := cutArrow(arg)
	if err != nil {
		return nil, err
	}
	f := Field(to)
	info, ok := fields[f]
	if !ok || info.load {
		return nil, fmt.Errorf("%q is no field that kvnet sets", to)
	}
	switch info.kind {
	case kindMAC:
		m, err := model.ParseMAC(value)
		return SetMAC{f, m}, err
	case kindIPv4:
		a, err := parseIPv4(value)
		return SetIP{f, a}, err
	}
	n, err := number[uint64](value)
	if err != nil {
		return nil, err
	}
	if f == FieldVLANVID {
		if n&vlanPresent == 0 {
			return nil, fmt.Errorf("a VLAN id to set has the bit 0x1000")
		}
		n &^= vlanPresent
	}
	if n > info.max {
		return nil, fmt.Errorf("%s is too large", value)
	}
	return SetUint{f, n}, nil
}

func parseIPv4(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return netip.Addr{}, fmt.Errorf("%q is no IPv4 address", s)
	}
	return a, nil
}

// wholeField reads the name of a field as move and load give it.
func wholeField(s string) (Field, error) {
	if name, ok := strings.CutSuffix(s, "[]"); ok {
		if f, ok := fieldByNXM(name); ok {
			return f, nil
		}
	}
	return "", fmt.Errorf("%q is no whole field that kvnet moves or loads", s)
}

func parseMove(arg string) (Action, error) {
	from, to, err := cutArrow(arg)
	if err != nil {
		return nil, err
	}
	var m Move
	if m.From, err = wholeField(from); err != nil {
		return nil, err
	}
	if m.To, err = wholeField(to); err != nil {
		return nil, err
	}
	return m, nil
}

func parseLoad(arg string) (Action, error) {
	value, to, err := cutArrow(arg)
	if err != nil {
		return nil, err
	}
	f, err := wholeField(to)
	if err != nil {
		return nil, err
	}
	if !fields[f].load {
		return nil, fmt.Errorf("%q is no field that kvnet loads", to)
	}
	n, err := number[uint64](value)
	return Load{f, n}, err
}

// parseCT reads what stands between the parentheses of ct.
func parseCT(in string) (Action, error) {
	words, err := split(in, false)
	if err != nil {
		return nil, err
	}
	var c CT
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch {
		case w == "commit":
			c.Commit = true
		case name == "zone":
			c.Zone, err = number[uint16](value)
		case name == "table":
			c.Table, err = number[uint8](value)
			if err == nil && c.Table == 0 {
				err = fmt.Errorf("a packet can't go on in table 0")
			}
		case w == "nat":
			c.NAT.Kind = NATKnown
		case strings.HasPrefix(w, "nat(") && strings.HasSuffix(w, ")"):
			c.NAT, err = parseNAT(w[len("nat(") : len(w)-1])
		default:
			err = fmt.Errorf("it is no part of ct that kvnet knows")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
	}
	return c, nil
}

// parseNAT reads what stands between the parentheses of nat. One address or port
// is a range of one.
func parseNAT(in string) (NAT, error) {
	var n NAT
	kind, arg, has := strings.Cut(in, "=")
	switch kind {
	case "src":
		n.Kind = NATSource
	case "dst":
		n.Kind = NATDestination
	default:
		return n, fmt.Errorf("%q is neither src nor dst", kind)
	}
	if !has {
		return n, nil
	}
	addrs, ports, hasPorts := strings.Cut(arg, ":")
	low, high := cutRange(addrs)
	var err error
	if n.IPMin, err = parseIPv4(low); err != nil {
		return NAT{}, err
	}
	if n.IPMax, err = parseIPv4(high); err != nil {
		return NAT{}, err
	}
	if hasPorts {
		low, high = cutRange(ports)
		if n.PortMin, err = number[uint16](low); err != nil {
			return NAT{}, err
		}
		if n.PortMax, err = number[uint16](high); err != nil {
			return NAT{}, err
		}
	}
	return n, nil
}

// cutRange cuts a range; one value is both its ends.
func cutRange(s string) (low, high string) {
	low, high, ok := strings.Cut(s, "-")
	if !ok {
		return s, s
	}
	return low, high
}
