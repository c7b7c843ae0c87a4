package flow

import (
	"net/netip"
	"slices"

	"kvnet/model"
)

// Owner names what a rule exists for: the handler and the object, for example
// "snat/r1" or "snat/r1/port/fa:16:3e:00:00:11". Owners order lexically.
type Owner string

// Rule is a flow entry. Actions are applied in order, then the packet goes on at
// table Goto; no action and no table means that it is dropped.
type Rule struct {
	Switch   model.DPID
	Table    uint8
	Priority uint16
	Match    Match
	Actions  []Action
	Goto     uint8 // 0: nowhere (a packet can't go on in table 0)
	// Announce is set on the ARP responder of an address: what to send when the
	// responder comes to this switch. It is no part of the rule on the wire.
	Announce *Announcement
}

// Key identifies a rule on its switch: rules with equal keys replace each other.
type Key struct {
	Table    uint8
	Priority uint16
	Match    Match
}

// Key is the key of r.
func (r Rule) Key() Key { return Key{r.Table, r.Priority, r.Match} }

// SameEffect tells whether r and o do the same with a packet.
func (r Rule) SameEffect(o Rule) bool {
	return r.Goto == o.Goto && slices.Equal(r.Actions, o.Actions)
}

// Announcement is a gratuitous ARP that belongs to an ARP responder.
type Announcement struct {
	// Address is the announced address. A responder for the same address on
	// another switch is the same responder, moved.
	Address netip.Addr
	// Scope tells responders for equal addresses of different routers apart.
	Scope string
	// Ports are where the frame leaves. Those that the switch lacks are left out.
	Ports []Port
	// Frame is the whole Ethernet frame.
	Frame string
	// Roams says that the frame's MAC is the same wherever the responder is. Then
	// switches on the way have to learn the MAC anew, and packets of the place
	// before that are still under way make them forget it again.
	Roams bool
}

// Equal tells whether a and o are the same announcement; both may be nil.
func (a *Announcement) Equal(o *Announcement) bool {
	if a == nil || o == nil {
		return a == o
	}
	return a.Address == o.Address && a.Scope == o.Scope && a.Frame == o.Frame && a.Roams == o.Roams && slices.Equal(a.Ports, o.Ports)
}

// GroupType is the type of a group (OpenFlow 1.3.5, section 7.3.4.2).
type GroupType uint8

// The group types that kvnet uses.
const (
	GroupAll    GroupType = 0
	GroupSelect GroupType = 1
)

// Group is a group with its buckets.
type Group struct {
	Switch  model.DPID
	ID      uint32
	Type    GroupType
	Buckets []Bucket
}

// Bucket is one choice of a group.
type Bucket struct {
	Weight  uint16
	Actions []Action
}

// Equal tells whether g and o are the same group with the same buckets in the
// same order.
func (g Group) Equal(o Group) bool {
	return g.Switch == o.Switch && g.ID == o.ID && g.Type == o.Type &&
		slices.EqualFunc(g.Buckets, o.Buckets, func(a, b Bucket) bool {
			return a.Weight == b.Weight && slices.Equal(a.Actions, b.Actions)
		})
}

// Set is everything that one owner wants on the switches.
type Set struct {
	Rules  []Rule
	Groups []Group
}
