package flow

// fieldKind is the form of a field's value.
type fieldKind uint8

const (
	kindMAC fieldKind = iota + 1
	kindIPv4
	kindUint
)

// fieldInfo is what the text and the checks need to know of a Field.
type fieldInfo struct {
	kind fieldKind
	nxm  string // the name in move and load; empty: the field is in neither
	hex  bool   // ovs-ofctl writes the value in hexadecimal
	load bool   // Load may write it
	max  uint64 // of kindUint
}

var fields = map[Field]fieldInfo{
	FieldEthSrc:   {kind: kindMAC, nxm: "NXM_OF_ETH_SRC"},
	FieldEthDst:   {kind: kindMAC, nxm: "NXM_OF_ETH_DST"},
	FieldARPSHA:   {kind: kindMAC, nxm: "NXM_NX_ARP_SHA"},
	FieldARPTHA:   {kind: kindMAC, nxm: "NXM_NX_ARP_THA"},
	FieldIPSrc:    {kind: kindIPv4, nxm: "NXM_OF_IP_SRC"},
	FieldIPDst:    {kind: kindIPv4, nxm: "NXM_OF_IP_DST"},
	FieldARPSPA:   {kind: kindIPv4, nxm: "NXM_OF_ARP_SPA"},
	FieldARPTPA:   {kind: kindIPv4, nxm: "NXM_OF_ARP_TPA"},
	FieldTunDst:   {kind: kindIPv4},
	FieldARPOp:    {kind: kindUint, max: 0xff},
	FieldTunID:    {kind: kindUint, hex: true, max: 1<<64 - 1},
	FieldVLANVID:  {kind: kindUint, max: 0xfff},
	FieldMetadata: {kind: kindUint, hex: true, max: 1<<64 - 1},
	FieldIPTTL:    {kind: kindUint, nxm: "NXM_NX_IP_TTL", load: true, max: 0xff},
	FieldICMPType: {kind: kindUint, nxm: "NXM_OF_ICMP_TYPE", load: true, max: 0xff},
}

// fieldByNXM finds a field by its name in move and load.
func fieldByNXM(name string) (Field, bool) {
	for f, info := range fields {
		if info.nxm != "" && info.nxm == name {
			return f, true
		}
	}
	return "", false
}
