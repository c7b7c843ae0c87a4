package wire

import (
	"bytes"
	"fmt"
	"slices"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// DecodeHello tells whether the sender of a HELLO speaks OpenFlow 1.3.
func DecodeHello(b []byte) (speaks13 bool, err error) {
	r, h, err := message(b, TypeHello)
	if err != nil {
		return false, fmt.Errorf("decode a hello: %w", err)
	}
	speaks13 = h.Version >= Version
	for r.more() {
		typ, n := r.u16(), int(r.u16())
		if r.err == nil && n < 4 {
			r.fail("element of %d bytes: %w", n, ErrLength)
		}
		body := r.sub(n - 4)
		// The padding of the last element may be missing.
		r.skip(min(pad8(n), len(r.b)))
		if r.err == nil && typ == 1 {
			speaks13 = body.u32()&(1<<Version) != 0
			if body.err != nil {
				return false, fmt.Errorf("decode a hello: %w", body.err)
			}
		}
	}
	if r.err != nil {
		return false, fmt.Errorf("decode a hello: %w", r.err)
	}
	return speaks13, nil
}

// Features is what is used of a FEATURES_REPLY.
type Features struct {
	DPID model.DPID
	// Auxiliary is the number of an auxiliary connection, 0 for a main one.
	Auxiliary uint8
	Tables    uint8
}

// DecodeFeatures decodes a FEATURES_REPLY.
func DecodeFeatures(b []byte) (Features, error) {
	r, _, err := message(b, TypeFeaturesReply)
	if err != nil {
		return Features{}, fmt.Errorf("decode a features reply: %w", err)
	}
	f := Features{DPID: model.DPID(r.u64())}
	r.skip(4)
	f.Tables, f.Auxiliary = r.u8(), r.u8()
	r.skip(2 + 4 + 4)
	if r.err != nil {
		return Features{}, fmt.Errorf("decode a features reply: %w", r.err)
	}
	return f, nil
}

// DecodePacketIn decodes a PACKET_IN.
func DecodePacketIn(b []byte) (PacketIn, error) {
	r, _, err := message(b, TypePacketIn)
	if err != nil {
		return PacketIn{}, fmt.Errorf("decode a packet-in: %w", err)
	}
	r.skip(4)
	p := PacketIn{TotalLen: r.u16(), Reason: r.u8(), Table: r.u8(), Cookie: r.u64()}
	p.InPort = r.inPort()
	r.skip(2)
	p.Data = slices.Clone(r.rest())
	if r.err != nil {
		return PacketIn{}, fmt.Errorf("decode a packet-in: %w", r.err)
	}
	return p, nil
}

// inPort reads a match and returns the port in it. The match of a packet-in
// holds the packet's metadata, of which a switch may send more than flow can say.
func (r *reader) inPort() uint32 {
	typ, n := r.u16(), int(r.u16())
	if r.err == nil && (typ != 1 || n < 4) {
		r.fail("match of type %d with %d bytes: %w", typ, n, ErrLength)
	}
	fields := r.sub(n - 4)
	r.skip(pad8(n))
	var port uint32
	for fields.more() {
		class, num, n := fields.u16(), fields.u8(), fields.u8()
		v := fields.take(int(n))
		if class == ClassBasic && num == FieldInPort.Number<<1 && n == FieldInPort.Len && v != nil {
			port = uint32(number(v))
		}
	}
	if fields.err != nil {
		r.fail("match: %w", fields.err)
	}
	return port
}

// DecodeFlowRemoved decodes a FLOW_REMOVED.
func DecodeFlowRemoved(b []byte) (FlowRemoved, error) {
	r, _, err := message(b, TypeFlowRemoved)
	if err != nil {
		return FlowRemoved{}, fmt.Errorf("decode a flow-removed: %w", err)
	}
	f := FlowRemoved{Cookie: r.u64(), Priority: r.u16(), Reason: r.u8(), Table: r.u8()}
	r.skip(4 + 4 + 2 + 2 + 8 + 8)
	f.Rule = flow.Rule{Table: f.Table, Priority: f.Priority}
	_, f.Rule.Match, f.DecodeErr = r.match()
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes after the match: %w", len(r.b), ErrLength)
	}
	if r.err != nil {
		return FlowRemoved{}, fmt.Errorf("decode a flow-removed: %w", r.err)
	}
	return f, nil
}

// Reasons of a PORT_STATUS.
const (
	PortAdded    uint8 = 0
	PortDeleted  uint8 = 1
	PortModified uint8 = 2
)

// PortStatus says what became of a port.
type PortStatus struct {
	Reason uint8
	Port   model.SwitchPort // its switch is not set
}

// DecodePortStatus decodes a PORT_STATUS.
func DecodePortStatus(b []byte) (PortStatus, error) {
	r, _, err := message(b, TypePortStatus)
	if err != nil {
		return PortStatus{}, fmt.Errorf("decode a port-status: %w", err)
	}
	p := PortStatus{Reason: r.u8()}
	r.skip(7)
	p.Port = r.port()
	if r.err == nil && p.Reason > PortModified {
		r.fail("unknown reason %d", p.Reason)
	}
	if r.err != nil {
		return PortStatus{}, fmt.Errorf("decode a port-status: %w", r.err)
	}
	return p, nil
}

// Bits of a port's configuration and state.
const (
	portDown = 1 << 0 // OFPPC_PORT_DOWN
	linkDown = 1 << 0 // OFPPS_LINK_DOWN
)

// port reads a description of a port.
func (r *reader) port() model.SwitchPort {
	p := model.SwitchPort{Number: r.u32()}
	r.skip(4)
	copy(p.MAC[:], r.take(6))
	r.skip(2)
	name, _, _ := bytes.Cut(r.take(16), []byte{0})
	p.Name = string(name)
	config, state := r.u32(), r.u32()
	p.Enabled = config&portDown == 0 && state&linkDown == 0
	r.skip(6 * 4)
	return p
}

// Roles in messages (OpenFlow 1.3.5, section 7.3.9).
const (
	RoleNoChange uint32 = 0
	RoleEqual    uint32 = 1
	RoleMaster   uint32 = 2
	RoleSlave    uint32 = 3
)

// RoleReply is the body of a ROLE_REPLY and of ONF's role-status.
type RoleReply struct {
	Role       uint32
	Generation uint64
}

// ModelRole is the role of r.
func (r RoleReply) ModelRole() model.Role {
	switch r.Role {
	case RoleMaster:
		return model.RoleMaster
	case RoleSlave:
		return model.RoleSlave
	}
	return model.RoleEqual
}

// DecodeRoleReply decodes a ROLE_REPLY.
func DecodeRoleReply(b []byte) (RoleReply, error) {
	r, _, err := message(b, TypeRoleReply)
	if err != nil {
		return RoleReply{}, fmt.Errorf("decode a role reply: %w", err)
	}
	return r.role("role reply", 4)
}

// role reads a role, skips pad bytes and reads the generation.
func (r *reader) role(what string, pad int) (RoleReply, error) {
	out := RoleReply{Role: r.u32()}
	r.skip(pad)
	out.Generation = r.u64()
	if r.err == nil && (out.Role < RoleEqual || out.Role > RoleSlave) {
		r.fail("unknown role %d", out.Role)
	}
	if r.err != nil {
		return RoleReply{}, fmt.Errorf("decode a %s: %w", what, r.err)
	}
	return out, nil
}

// BundleControl is ONF's bundle control message.
type BundleControl struct {
	ID          uint32
	Type, Flags uint16
}

// Types and flags of a bundle control message.
const (
	BundleOpenRequest    uint16 = 0
	BundleOpenReply      uint16 = 1
	BundleCloseRequest   uint16 = 2
	BundleCloseReply     uint16 = 3
	BundleCommitRequest  uint16 = 4
	BundleCommitReply    uint16 = 5
	BundleDiscardRequest uint16 = 6
	BundleDiscardReply   uint16 = 7

	BundleAtomic  uint16 = 1
	BundleOrdered uint16 = 2
)

// Experimenter is a decoded message of an experimenter. Bundle or RoleStatus is
// set; both are nil for a message that isn't known.
type Experimenter struct {
	Experimenter, Type uint32
	Bundle             *BundleControl
	RoleStatus         *RoleReply
}

// DecodeExperimenter decodes a message of an experimenter.
func DecodeExperimenter(b []byte) (Experimenter, error) {
	r, _, err := message(b, TypeExperimenter)
	if err != nil {
		return Experimenter{}, fmt.Errorf("decode an experimenter's message: %w", err)
	}
	e := Experimenter{Experimenter: r.u32(), Type: r.u32()}
	if r.err != nil {
		return Experimenter{}, fmt.Errorf("decode an experimenter's message: %w", r.err)
	}
	if e.Experimenter != ExperimenterONF {
		return e, nil
	}
	switch e.Type {
	case ONFBundleControl:
		e.Bundle = &BundleControl{ID: r.u32(), Type: r.u16(), Flags: r.u16()}
		if r.err != nil {
			return Experimenter{}, fmt.Errorf("decode a bundle control message: %w", r.err)
		}
	case ONFRoleStatus:
		st, err := r.role("role status", 4) // a reason and padding
		if err != nil {
			return Experimenter{}, err
		}
		e.RoleStatus = &st
	}
	return e, nil
}
