package handlers

import (
	"kvnet/model"
	"kvnet/southbound/flow"
)

// VLANID is the VLAN id of a VLAN network; ok is false if its segment is none.
func VLANID(n *model.Network) (id uint16, ok bool) {
	s, ok := n.Segment()
	return uint16(s), ok && s >= 1 && s <= 4094
}

// Tag is the VLAN id that packets of a network carry on the physical network; 0:
// none. Those of an unknown network (nil) carry none. ok is false for a VLAN
// network without a VLAN id.
func Tag(n *model.Network) (id uint16, ok bool) {
	if n == nil || n.Type != model.NetworkVLAN {
		return 0, true
	}
	return VLANID(n)
}

// PushTag are the actions that give an untagged packet the tag id; none for 0.
func PushTag(id uint16) []flow.Action {
	if id == 0 {
		return nil
	}
	return []flow.Action{flow.PushVLAN{}, flow.SetUint{Field: flow.FieldVLANVID, Value: uint64(id)}}
}
