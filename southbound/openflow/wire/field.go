package wire

import "fmt"

// Field is a field of a match or a set_field action, as class, number and length
// without mask (OpenFlow 1.3.5, section 7.2.3.2).
type Field struct {
	Class  uint16
	Number uint8
	Len    uint8
}

// Classes of fields.
const (
	ClassNXM0  uint16 = 0x0000
	ClassNXM1  uint16 = 0x0001
	ClassBasic uint16 = 0x8000
)

// The fields that flow can say.
var (
	FieldInPort   = Field{ClassBasic, 0, 4}
	FieldMetadata = Field{ClassBasic, 2, 8}
	FieldEthDst   = Field{ClassBasic, 3, 6}
	FieldEthSrc   = Field{ClassBasic, 4, 6}
	FieldEthType  = Field{ClassBasic, 5, 2}
	FieldVLANVID  = Field{ClassBasic, 6, 2}
	FieldIPProto  = Field{ClassBasic, 10, 1}
	FieldIPv4Src  = Field{ClassBasic, 11, 4}
	FieldIPv4Dst  = Field{ClassBasic, 12, 4}
	FieldTCPSrc   = Field{ClassBasic, 13, 2}
	FieldTCPDst   = Field{ClassBasic, 14, 2}
	FieldUDPSrc   = Field{ClassBasic, 15, 2}
	FieldUDPDst   = Field{ClassBasic, 16, 2}
	FieldSCTPSrc  = Field{ClassBasic, 17, 2}
	FieldSCTPDst  = Field{ClassBasic, 18, 2}
	FieldICMPType = Field{ClassBasic, 19, 1}
	FieldICMPCode = Field{ClassBasic, 20, 1}
	FieldARPOp    = Field{ClassBasic, 21, 2}
	FieldARPSPA   = Field{ClassBasic, 22, 4}
	FieldARPTPA   = Field{ClassBasic, 23, 4}
	FieldARPSHA   = Field{ClassBasic, 24, 6}
	FieldARPTHA   = Field{ClassBasic, 25, 6}
	FieldTunnelID = Field{ClassBasic, 38, 8}

	FieldTunIPv4Dst = Field{ClassNXM1, 32, 4}
	FieldCTState    = Field{ClassNXM1, 105, 4}

	// The names that move and load actions of OpenFlow 1.3 use.
	FieldNXMEthDst   = Field{ClassNXM0, 1, 6}
	FieldNXMEthSrc   = Field{ClassNXM0, 2, 6}
	FieldNXMIPSrc    = Field{ClassNXM0, 7, 4}
	FieldNXMIPDst    = Field{ClassNXM0, 8, 4}
	FieldNXMICMPType = Field{ClassNXM0, 13, 1}
	FieldNXMARPSPA   = Field{ClassNXM0, 16, 4}
	FieldNXMARPTPA   = Field{ClassNXM0, 17, 4}
	FieldNXMARPSHA   = Field{ClassNXM1, 17, 6}
	FieldNXMARPTHA   = Field{ClassNXM1, 18, 6}
	FieldNXMIPTTL    = Field{ClassNXM1, 29, 1}
)

// VLANPresent is the bit of VLAN_VID that says that there is a tag.
const VLANPresent uint16 = 0x1000

// Header is the header of f without mask, as actions name a field.
func (f Field) Header() uint32 {
	return uint32(f.Class)<<16 | uint32(f.Number)<<9 | uint32(f.Len)
}

// String writes f for an error message.
func (f Field) String() string {
	return fmt.Sprintf("field %d of class 0x%04x with %d bytes", f.Number, f.Class, f.Len)
}

// oxm is one field with its value, and its mask if it has one.
type oxm struct {
	field       Field
	value, mask []byte
}

// oxm reads one field. Value and mask alias the input.
func (r *reader) oxm() oxm {
	class, num, n := r.u16(), r.u8(), r.u8()
	o := oxm{field: Field{class, num >> 1, n}}
	if class == 0xffff {
		r.fail("field of an experimenter")
		return o
	}
	if num&1 == 0 {
		o.value = r.take(int(n))
		return o
	}
	if n%2 != 0 {
		r.fail("masked field of %d bytes: %w", n, ErrLength)
		return o
	}
	o.field.Len = n / 2
	o.value, o.mask = r.take(int(n/2)), r.take(int(n/2))
	return o
}

// uint is the value as a number.
func number(b []byte) uint64 {
	var n uint64
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}
