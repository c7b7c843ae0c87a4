package handlers

import "kvnet/model"

// VLANID is the VLAN id of a VLAN network; ok is false if its segment is none.
func VLANID(n *model.Network) (id uint16, ok bool) {
	s, ok := n.Segment()
	return uint16(s), ok && s >= 1 && s <= 4094
}
