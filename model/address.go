package model

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// MAC is an Ethernet address. Its zero value means "no address".
type MAC [6]byte

// ParseMAC reads six hexadecimal pairs separated by colons, in either case, as
// ONOS does. Dashes and other forms are refused.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	if len(s) != 17 {
		return m, fmt.Errorf("%q is not a MAC address of six hexadecimal pairs separated by colons", s)
	}
	for i := range 6 {
		if i > 0 && s[i*3-1] != ':' {
			return MAC{}, fmt.Errorf("%q is not a MAC address of six hexadecimal pairs separated by colons", s)
		}
		if _, err := hex.Decode(m[i:i+1], []byte(s[i*3:i*3+2])); err != nil {
			return MAC{}, fmt.Errorf("%q is not a MAC address of six hexadecimal pairs separated by colons", s)
		}
	}
	return m, nil
}

// IsZero tells whether m is the absent address.
func (m MAC) IsZero() bool { return m == MAC{} }

// String writes m in lower case with colons, as Open vSwitch does.
func (m MAC) String() string {
	var b [17]byte
	for i, x := range m {
		if i > 0 {
			b[i*3-1] = ':'
		}
		hex.Encode(b[i*3:i*3+2], []byte{x})
	}
	return string(b[:])
}

// MarshalText implements encoding.TextMarshaler; the zero address is empty.
func (m MAC) MarshalText() ([]byte, error) {
	if m.IsZero() {
		return []byte{}, nil
	}
	return []byte(m.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MAC) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*m = MAC{}
		return nil
	}
	x, err := ParseMAC(string(b))
	if err == nil {
		*m = x
	}
	return err
}

// DPID is the datapath id of an OpenFlow switch (OpenFlow 1.3.5, section 7.3.1).
type DPID uint64

// String writes d as ONOS names a device: "of:" and 16 hexadecimal digits.
func (d DPID) String() string { return fmt.Sprintf("of:%016x", uint64(d)) }

// ParseDPID reads the form that String writes; leading zeros may be left out.
func ParseDPID(s string) (DPID, error) {
	h, ok := strings.CutPrefix(s, "of:")
	if !ok || h == "" || len(h) > 16 {
		return 0, fmt.Errorf("%q is not a device id of the form of:<16 hexadecimal digits>", s)
	}
	n, err := strconv.ParseUint(h, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a device id of the form of:<16 hexadecimal digits>", s)
	}
	return DPID(n), nil
}

// DeviceID is a device id as clients write it. ONOS accepts any URI reference,
// so a DeviceID need not name an OpenFlow switch.
type DeviceID string

// DPID gives the datapath id that d names; ok is false if d names no OpenFlow
// switch.
func (d DeviceID) DPID() (id DPID, ok bool) {
	id, err := ParseDPID(string(d))
	return id, err == nil
}

// BridgeDeviceID computes the device id that ONOS gives to the bridge of that
// name when the client names none: the Java string hash of name as 32 unsigned
// bits (for example of "br-int-worker-01").
func BridgeDeviceID(name string) DeviceID {
	return DeviceID(DPID(javaHash(name)).String())
}

func javaHash(s string) uint32 {
	var h uint32
	for _, r := range s {
		if r < 0x10000 {
			h = 31*h + uint32(r)
			continue
		}
		r -= 0x10000
		h = 31*h + 0xd800 + uint32(r>>10)
		h = 31*h + 0xdc00 + uint32(r&0x3ff)
	}
	return h
}
