package openflow

import (
	"fmt"

	ofp "github.com/contiv/libOpenflow/openflow13"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// encodeActions encodes actions, which are valid and have their ports' numbers.
// size is their length in bytes; the library counts with 16 bits, which overflow.
func encodeActions(actions []flow.Action) (out []ofp.Action, size int, err error) {
	for _, a := range actions {
		e, err := encodeAction(a)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, e)
		size += int(e.Len())
	}
	return out, size, nil
}

func encodeAction(a flow.Action) (ofp.Action, error) {
	switch a := a.(type) {
	case flow.Output:
		if a.Port.Name != "" {
			return nil, fmt.Errorf("port %q has no number", a.Port.Name)
		}
		out := ofp.NewActionOutput(a.Port.Number)
		out.MaxLen = a.MaxLen
		return out, nil
	case flow.ToGroup:
		return ofp.NewActionGroup(a.ID), nil
	case flow.SetMAC:
		return setField(a.Field, value(a.MAC[:]))
	case flow.SetIP:
		return setField(a.Field, ip4(a.IP))
	case flow.SetUint:
		return encodeSetUint(a)
	case flow.Move:
		m, ok := moves[a]
		if !ok {
			return nil, fmt.Errorf("move from %s to %s isn't known", a.From, a.To)
		}
		src, dst := field(m[0], nil, nil), field(m[1], nil, nil)
		return ofp.NewNXActionRegMove(8*uint16(m[0].Len), 0, 0, &src, &dst), nil
	case flow.Load:
		f, ok := loads[a.Field]
		if !ok {
			return nil, fmt.Errorf("load into %s isn't known", a.Field)
		}
		dst := field(f, nil, nil)
		return ofp.NewNXActionRegLoad(8*uint16(f.Len)-1, &dst, a.Value), nil
	case flow.PopVLAN:
		return ofp.NewActionPopVlan(), nil
	case flow.PushVLAN:
		return ofp.NewActionPushVlan(flow.EthTypeVLAN), nil
	case flow.CT:
		return encodeCT(a), nil
	}
	return nil, fmt.Errorf("action %T isn't known", a)
}

// setFields are the fields that set_field writes. tun_dst has no number in
// OpenFlow 1.3; Open vSwitch takes Nicira's.
var setFields = map[flow.Field]wire.Field{
	flow.FieldEthSrc: wire.FieldEthSrc, flow.FieldEthDst: wire.FieldEthDst, flow.FieldARPSHA: wire.FieldARPSHA, flow.FieldARPTHA: wire.FieldARPTHA,
	flow.FieldIPSrc: wire.FieldIPv4Src, flow.FieldIPDst: wire.FieldIPv4Dst, flow.FieldARPSPA: wire.FieldARPSPA, flow.FieldARPTPA: wire.FieldARPTPA,
	flow.FieldTunDst: wire.FieldTunIPv4Dst, flow.FieldARPOp: wire.FieldARPOp, flow.FieldTunID: wire.FieldTunnelID, flow.FieldVLANVID: wire.FieldVLANVID,
	flow.FieldMetadata: wire.FieldMetadata,
}

// moves and loads are Nicira's actions of OpenFlow 1.3 with Nicira's numbers of
// fields, as the original sends them and Open vSwitch writes them back.
var (
	moves = map[flow.Move][2]wire.Field{
		{From: flow.FieldEthSrc, To: flow.FieldEthDst}: {wire.FieldNXMEthSrc, wire.FieldNXMEthDst},
		{From: flow.FieldIPSrc, To: flow.FieldIPDst}:   {wire.FieldNXMIPSrc, wire.FieldNXMIPDst},
		{From: flow.FieldARPSHA, To: flow.FieldARPTHA}: {wire.FieldNXMARPSHA, wire.FieldNXMARPTHA},
		{From: flow.FieldARPSPA, To: flow.FieldARPTPA}: {wire.FieldNXMARPSPA, wire.FieldNXMARPTPA},
	}
	loads = map[flow.Field]wire.Field{
		flow.FieldIPTTL:    wire.FieldNXMIPTTL,
		flow.FieldICMPType: wire.FieldNXMICMPType,
	}
)

func setField(name flow.Field, v value) (ofp.Action, error) {
	f, ok := setFields[name]
	if !ok || int(f.Len) != len(v) {
		return nil, fmt.Errorf("set_field of %s with %d bytes isn't known", name, len(v))
	}
	return ofp.NewActionSetField(field(f, v, nil)), nil
}

func encodeSetUint(a flow.SetUint) (ofp.Action, error) {
	switch a.Field {
	case flow.FieldTunID, flow.FieldMetadata:
		return setField(a.Field, u64(a.Value))
	case flow.FieldVLANVID:
		return setField(a.Field, u16(wire.VLANPresent|uint16(a.Value)))
	}
	return setField(a.Field, u16(uint16(a.Value)))
}

func encodeCT(a flow.CT) ofp.Action {
	ct := ofp.NewNXActionConnTrack().ZoneImm(a.Zone)
	if a.Commit {
		ct.Commit()
	}
	if a.Table != 0 {
		ct.Table(a.Table)
	}
	if nat := encodeNAT(a.NAT); nat != nil {
		// Added when complete: the length is taken here (see mend.go).
		ct.AddAction(nat)
	}
	return ct
}

func encodeNAT(n flow.NAT) ofp.Action {
	if n.Kind == flow.NATNone {
		return nil
	}
	nat := ofp.NewNXActionCTNAT()
	switch n.Kind {
	case flow.NATSource:
		nat.Flags = wire.NATFlagSrc
	case flow.NATDestination:
		nat.Flags = wire.NATFlagDst
	}
	if n.IPMin.IsValid() {
		nat.SetRangeIPv4Min(n.IPMin.AsSlice())
		nat.SetRangeIPv4Max(n.IPMax.AsSlice())
	}
	if n.PortMin != 0 {
		nat.SetRangeProtoMin(&n.PortMin)
		nat.SetRangeProtoMax(&n.PortMax)
	}
	return nat
}
