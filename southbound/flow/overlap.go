package flow

import "net/netip"

// Overlaps tells whether there may be a packet that both m and o match. Ports are
// told apart by name or number as they stand, and packets without VLAN tag, of an
// unknown protocol and so on count as possible.
func (m Match) Overlaps(o Match) bool {
	return same(m.InPort, o.InPort) && same(m.EthSrc, o.EthSrc) && same(m.EthDst, o.EthDst) &&
		same(m.EthType, o.EthType) && same(m.VLAN, o.VLAN) && same(m.IPProto, o.IPProto) &&
		prefixes(m.IPSrc, o.IPSrc) && prefixes(m.IPDst, o.IPDst) &&
		meet(m.TPSrc.Value, m.TPSrc.Mask, o.TPSrc.Value, o.TPSrc.Mask) &&
		meet(m.TPDst.Value, m.TPDst.Mask, o.TPDst.Value, o.TPDst.Mask) &&
		same(m.ICMPType, o.ICMPType) && same(m.ICMPCode, o.ICMPCode) && same(m.ARPOp, o.ARPOp) &&
		prefixes(m.ARPSPA, o.ARPSPA) && prefixes(m.ARPTPA, o.ARPTPA) && same(m.TunID, o.TunID) &&
		meet(m.CTState.Value, m.CTState.Mask, o.CTState.Value, o.CTState.Mask) &&
		meet(m.Metadata.Value, m.Metadata.Mask, o.Metadata.Value, o.Metadata.Mask)
}

// same tells whether two exact fields, either of which may match anything, allow
// one value.
func same[T comparable](a, b T) bool {
	var anything T
	return a == b || a == anything || b == anything
}

func prefixes(a, b netip.Prefix) bool { return !a.IsValid() || !b.IsValid() || a.Overlaps(b) }

func meet[T uint16 | uint32 | uint64](a, aMask, b, bMask T) bool { return (a^b)&aMask&bMask == 0 }

// Ambiguous finds pairs of different rules with one table and priority that may match
// the same packet and do different things with it: OpenFlow leaves open which of
// the two counts. Rules with equal keys are no such pair, as a switch holds only one
// of them.
func Ambiguous(rules []Rule) (pairs [][2]Rule) {
	type place struct {
		sw       uint64
		table    uint8
		priority uint16
	}
	places := map[place][]Rule{}
	for _, r := range rules {
		p := place{uint64(r.Switch), r.Table, r.Priority}
		for _, o := range places[p] {
			if r.Match != o.Match && r.Match.Overlaps(o.Match) && !r.SameEffect(o) {
				pairs = append(pairs, [2]Rule{o, r})
			}
		}
		places[p] = append(places[p], r)
	}
	return pairs
}
