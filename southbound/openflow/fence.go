//go:build !kvnet_nogeneration

package openflow

import "kvnet/southbound/openflow/wire"

// request asks for the role under its generation. A switch refuses a generation
// that is older than one that it knows, and makes whoever was MASTER a SLAVE.
func (r Role) request(xid uint32) []byte {
	role := wire.RoleSlave
	if r.Master {
		role = wire.RoleMaster
	}
	return roleRequest(xid, role, r.Generation)
}

// take keeps what a switch has answered to a request.
func (r *roles) take(reply wire.RoleReply) {
	r.role, r.generation = reply.ModelRole(), reply.Generation
}
