package flow

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"kvnet/model"
)

// number reads an unsigned number that fits into T, decimal or with 0x.
func number[T uint8 | uint16 | uint32 | uint64](s string) (T, error) {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil || uint64(T(n)) != n {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", s, ^T(0))
	}
	return T(n), nil
}

// nonZero reads a number of a field whose zero stands for "any" in flow.
func nonZero[T uint8 | uint16 | uint32](s string) (T, error) {
	n, err := number[T](s)
	if err == nil && n == 0 {
		err = fmt.Errorf("kvnet doesn't use the value 0")
	}
	return n, err
}

// masked reads value/mask, or a value that counts in all its bits.
func masked[T uint16 | uint64](s string) (value, mask T, err error) {
	v, m, has := strings.Cut(s, "/")
	if value, err = number[T](v); err != nil {
		return 0, 0, err
	}
	mask = ^T(0)
	if has {
		if mask, err = number[T](m); err != nil {
			return 0, 0, err
		}
	}
	return value & mask, mask, nil
}

// parseShorthand reads a word that stands for Ethernet type and IP protocol.
func (m *Match) parseShorthand(word string) error {
	if m.EthType != 0 || m.IPProto != 0 {
		return fmt.Errorf("the protocol is given twice")
	}
	switch word {
	case "ip":
		m.EthType = EthTypeIPv4
		return nil
	case "arp":
		m.EthType = EthTypeARP
		return nil
	case "ipv6":
		m.EthType = EthTypeIPv6
		return nil
	}
	for p, name := range protoNames {
		if name == word {
			m.EthType, m.IPProto = EthTypeIPv4, p
			return nil
		}
	}
	return fmt.Errorf("it is no word of a match that kvnet knows")
}

// parseField reads one field of a match.
func (m *Match) parseField(name, value string) (err error) {
	switch name {
	case "in_port":
		m.InPort, err = parsePort(value)
	case "dl_src":
		m.EthSrc, err = parseMAC(value)
	case "dl_dst":
		m.EthDst, err = parseMAC(value)
	case "dl_type":
		if m.EthType != 0 {
			return fmt.Errorf("the protocol is given twice")
		}
		m.EthType, err = nonZero[uint16](value)
	case "dl_vlan":
		m.VLAN, err = parseVLAN(value)
	case "vlan_tci":
		if value != noVLANText && value != "0x0000" {
			return fmt.Errorf("of vlan_tci only %s is known", noVLANText)
		}
		m.VLAN = NoVLAN
	case "nw_proto":
		if m.IPProto != 0 {
			return fmt.Errorf("the protocol is given twice")
		}
		m.IPProto, err = nonZero[uint8](value)
	case "nw_src":
		m.IPSrc, err = parsePrefix(value)
	case "nw_dst":
		m.IPDst, err = parsePrefix(value)
	case "arp_spa":
		m.ARPSPA, err = parsePrefix(value)
	case "arp_tpa":
		m.ARPTPA, err = parsePrefix(value)
	case "arp_op":
		m.ARPOp, err = nonZero[uint16](value)
	case "tp_src":
		m.TPSrc.Value, m.TPSrc.Mask, err = masked[uint16](value)
	case "tp_dst":
		m.TPDst.Value, m.TPDst.Mask, err = masked[uint16](value)
	case "icmp_type":
		m.ICMPType.Set = true
		m.ICMPType.Value, err = number[uint8](value)
	case "icmp_code":
		m.ICMPCode.Set = true
		m.ICMPCode.Value, err = number[uint8](value)
	case "tun_id":
		m.TunID.Set = true
		m.TunID.Value, err = number[uint64](value)
	case "metadata":
		m.Metadata.Value, m.Metadata.Mask, err = masked[uint64](value)
	case "ct_state":
		m.CTState, err = parseCTState(value)
	default:
		err = fmt.Errorf("it is no field that kvnet knows")
	}
	return err
}

func parseMAC(s string) (model.MAC, error) {
	mac, err := model.ParseMAC(s)
	if err == nil && mac.IsZero() {
		err = fmt.Errorf("the address of zeros can't be matched")
	}
	return mac, err
}

func parseVLAN(s string) (VLAN, error) {
	id, err := number[uint16](s)
	if err == nil && id > 0xfff {
		err = fmt.Errorf("%d is no VLAN id", id)
	}
	return VLANID(id), err
}

// parsePrefix reads an IPv4 address or prefix. The prefix of all addresses is
// the absent one.
func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		s += "/32"
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() {
		return netip.Prefix{}, fmt.Errorf("it is no IPv4 address or prefix")
	}
	if p.Bits() == 0 {
		return netip.Prefix{}, nil
	}
	return p.Masked(), nil
}

// parseCTState reads the flags that must be set (+) and clear (-).
func parseCTState(s string) (Masked32, error) {
	var m Masked32
	rest := s
	for rest != "" {
		sign := rest[0]
		if sign != '+' && sign != '-' {
			break
		}
		i := 0
		for i < len(ctStateNames) && !strings.HasPrefix(rest[1:], ctStateNames[i]) {
			i++
		}
		if i == len(ctStateNames) || m.Mask&(1<<i) != 0 {
			break
		}
		m.Mask |= 1 << i
		if sign == '+' {
			m.Value |= 1 << i
		}
		rest = rest[1+len(ctStateNames[i]):]
	}
	if s == "" || rest != "" {
		return Masked32{}, fmt.Errorf("it is no list of flags each with + or -, each once")
	}
	return m, nil
}

// parsePort reads a reserved name, a number, or the name of a port, which
// ovs-ofctl quotes unless it looks like an identifier.
func parsePort(s string) (Port, error) {
	switch s {
	case "IN_PORT":
		return InPort, nil
	case "NORMAL":
		return Normal, nil
	case "CONTROLLER":
		return Controller, nil
	case "LOCAL":
		return Local, nil
	case "":
		return Port{}, fmt.Errorf("the port is missing")
	case "ANY", "ALL", "FLOOD", "TABLE", "NONE":
		return Port{}, fmt.Errorf("kvnet doesn't use the reserved port %s", s)
	}
	if s[0] == '"' {
		name, err := strconv.Unquote(s)
		if err != nil || name == "" {
			return Port{}, fmt.Errorf("%s is no quoted name of a port", s)
		}
		return NamedPort(name), nil
	}
	if s[0] >= '0' && s[0] <= '9' {
		n, err := nonZero[uint32](s)
		return NumberedPort(n), err
	}
	for _, c := range s {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return Port{}, fmt.Errorf("%q is no name of a port", s)
		}
	}
	return NamedPort(s), nil
}
