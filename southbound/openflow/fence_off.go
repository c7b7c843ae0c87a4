//go:build kvnet_nogeneration

package openflow

import (
	"kvnet/model"
	"kvnet/southbound/openflow/wire"
)

// This is a leader without generation ids, for a test that shows what they are for.
// OpenFlow has one role for that: EQUAL, which may write, and which a switch takes
// from nobody.

func (r Role) request(xid uint32) []byte {
	role := wire.RoleSlave
	if r.Master {
		role = wire.RoleEqual
	}
	return roleRequest(xid, role, 0)
}

func (r *roles) take(reply wire.RoleReply) {
	r.role, r.generation = reply.ModelRole(), r.wanted.Generation
	if r.wanted.Master && reply.Role == wire.RoleEqual {
		r.role = model.RoleMaster
	}
}
