package flow

import "strconv"

// Port is a port of a switch: by name until reconcile has looked its number up,
// by number then. The zero Port means "none".
type Port struct {
	Name   string
	Number uint32
}

// The reserved ports (OpenFlow 1.3.5, section 7.2.1).
var (
	InPort     = Port{Number: 0xfffffff8}
	Normal     = Port{Number: 0xfffffffa}
	Controller = Port{Number: 0xfffffffd}
	Local      = Port{Number: 0xfffffffe}
)

// NamedPort is the port of that name on the rule's switch.
func NamedPort(name string) Port { return Port{Name: name} }

// NumberedPort is the port of that number.
func NumberedPort(n uint32) Port { return Port{Number: n} }

// IsZero tells whether p is no port.
func (p Port) IsZero() bool { return p == Port{} }

// String writes p as ovs-ofctl does: a reserved name, a quoted name or a number.
func (p Port) String() string {
	switch p {
	case InPort:
		return "IN_PORT"
	case Normal:
		return "NORMAL"
	case Controller:
		return "CONTROLLER"
	case Local:
		return "LOCAL"
	}
	if p.Name != "" {
		return strconv.Quote(p.Name)
	}
	return strconv.FormatUint(uint64(p.Number), 10)
}
