package openflow

import (
	"encoding/binary"
	"net/netip"

	ofp "github.com/contiv/libOpenflow/openflow13"

	"kvnet/southbound/openflow/wire"
)

// value is the bytes of a field, for the library.
type value []byte

// Len implements the library's util.Message.
func (v value) Len() uint16 { return uint16(len(v)) }

// MarshalBinary implements the library's util.Message.
func (v value) MarshalBinary() ([]byte, error) { return v, nil }

// UnmarshalBinary implements the library's util.Message.
func (v value) UnmarshalBinary([]byte) error { return errDecode }

func u8(n uint8) value   { return value{n} }
func u16(n uint16) value { return binary.BigEndian.AppendUint16(nil, n) }
func u32(n uint32) value { return binary.BigEndian.AppendUint32(nil, n) }
func u64(n uint64) value { return binary.BigEndian.AppendUint64(nil, n) }

func ip4(a netip.Addr) value { b := a.As4(); return b[:] }

// field builds a field for a match (or, without mask, for set_field). The
// library's own constructors know no mask for transport ports and ARP addresses,
// no ICMP fields, and set OFPVID_PRESENT for "no tag" too.
func field(f wire.Field, v, mask value) ofp.MatchField {
	m := ofp.MatchField{Class: f.Class, Field: f.Number, Length: f.Len, Value: v}
	if mask != nil {
		m.HasMask, m.Mask, m.Length = true, mask, 2*f.Len
	}
	return m
}
