package openflow

import (
	"fmt"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// appendAction appends one action of a rule, which is valid and has its port's
// number.
func appendAction(b []byte, a flow.Action) ([]byte, error) {
	switch a := a.(type) {
	case flow.Output:
		if a.Port.Name != "" {
			return nil, fmt.Errorf("port %q has no number", a.Port.Name)
		}
		b = be.AppendUint32(appendActionHead(b, wire.ActionOutput, 16), a.Port.Number)
		return append(be.AppendUint16(b, a.MaxLen), 0, 0, 0, 0, 0, 0), nil
	case flow.ToGroup:
		return be.AppendUint32(appendActionHead(b, wire.ActionGroup, 8), a.ID), nil
	case flow.SetMAC:
		return appendSetField(b, a.Field, a.MAC[:])
	case flow.SetIP:
		ip := a.IP.As4()
		return appendSetField(b, a.Field, ip[:])
	case flow.SetUint:
		return appendSetUint(b, a)
	case flow.Move:
		m, ok := moves[a]
		if !ok {
			return nil, fmt.Errorf("move from %s to %s isn't known", a.From, a.To)
		}
		b = appendNicira(b, wire.NiciraMove, 24)
		b = append(be.AppendUint16(b, 8*uint16(m[0].Len)), 0, 0, 0, 0) // both from their first bit
		return be.AppendUint32(be.AppendUint32(b, m[0].Header()), m[1].Header()), nil
	case flow.Load:
		f, ok := loads[a.Field]
		if !ok {
			return nil, fmt.Errorf("load into %s isn't known", a.Field)
		}
		b = be.AppendUint16(appendNicira(b, wire.NiciraLoad, 24), 8*uint16(f.Len)-1)
		return be.AppendUint64(be.AppendUint32(b, f.Header()), a.Value), nil
	case flow.PopVLAN:
		return append(appendActionHead(b, wire.ActionPopVLAN, 8), 0, 0, 0, 0), nil
	case flow.PushVLAN:
		return append(be.AppendUint16(appendActionHead(b, wire.ActionPushVLAN, 8), flow.EthTypeVLAN), 0, 0), nil
	case flow.CT:
		return appendCT(b, a), nil
	}
	return nil, fmt.Errorf("action %T isn't known", a)
}

func appendActionHead(b []byte, typ, length uint16) []byte {
	return be.AppendUint16(be.AppendUint16(b, typ), length)
}

func appendNicira(b []byte, subtype, length uint16) []byte {
	b = be.AppendUint32(appendActionHead(b, wire.ActionExperimenter, length), wire.ExperimenterNicira)
	return be.AppendUint16(b, subtype)
}

func appendSetField(b []byte, name flow.Field, v []byte) ([]byte, error) {
	f, ok := setFields[name]
	if !ok || int(f.Len) != len(v) {
		return nil, fmt.Errorf("set_field of %s with %d bytes isn't known", name, len(v))
	}
	start := len(b)
	b = appendActionHead(b, wire.ActionSetField, uint16(8+len(v)+7)&^7)
	return pad8(append(appendField(b, f), v...), start), nil
}

func appendSetUint(b []byte, a flow.SetUint) ([]byte, error) {
	var v [8]byte
	switch a.Field {
	case flow.FieldTunID, flow.FieldMetadata:
		be.PutUint64(v[:], a.Value)
		return appendSetField(b, a.Field, v[:])
	case flow.FieldVLANVID:
		be.PutUint16(v[:], wire.VLANPresent|uint16(a.Value))
	default:
		be.PutUint16(v[:], uint16(a.Value))
	}
	return appendSetField(b, a.Field, v[:2])
}

func appendCT(b []byte, a flow.CT) []byte {
	start := len(b)
	b = appendNicira(b, wire.NiciraCT, 0) // the length follows
	var flags uint16
	if a.Commit {
		flags = wire.CTCommit
	}
	b = be.AppendUint16(b, flags)
	b = append(b, 0, 0, 0, 0) // the zone is a number, not a field
	b = be.AppendUint16(b, a.Zone)
	table := a.Table
	if table == 0 {
		table = wire.CTNoTable
	}
	b = append(b, table, 0, 0, 0, 0, 0) // padding and no helper
	b = appendNAT(b, a.NAT)
	be.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}

func appendNAT(b []byte, n flow.NAT) []byte {
	if n.Kind == flow.NATNone {
		return b
	}
	start := len(b)
	b = append(appendNicira(b, wire.NiciraNAT, 0), 0, 0) // the length follows
	var flags, present uint16
	switch n.Kind {
	case flow.NATSource:
		flags = wire.NATFlagSrc
	case flow.NATDestination:
		flags = wire.NATFlagDst
	}
	if n.IPMin.IsValid() {
		present |= wire.NATIPv4Min | wire.NATIPv4Max
	}
	if n.PortMin != 0 {
		present |= wire.NATPortMin | wire.NATPortMax
	}
	b = be.AppendUint16(be.AppendUint16(b, flags), present)
	if n.IPMin.IsValid() {
		low, high := n.IPMin.As4(), n.IPMax.As4()
		b = append(append(b, low[:]...), high[:]...)
	}
	if n.PortMin != 0 {
		b = be.AppendUint16(be.AppendUint16(b, n.PortMin), n.PortMax)
	}
	b = pad8(b, start)
	be.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}
