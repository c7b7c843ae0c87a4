package reconcile

import (
	"net/netip"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// key is a flow.Key in half the memory: there is one for each rule, and most of a
// flow.Match is room for addresses of any kind. Equal keys are equal values.
type key struct {
	portName           string
	metadata           flow.Masked64
	tunID              uint64
	portNumber         uint32
	ctState            flow.Masked32
	tpSrc, tpDst       flow.PortMask
	ethType, arpOp     uint16
	vlan               flow.VLAN
	priority           uint16
	ethSrc, ethDst     model.MAC
	ipSrc, ipDst       prefix
	arpSPA, arpTPA     prefix
	icmpType, icmpCode flow.OptUint8
	ipProto            uint8
	tunIDSet           bool
	table              uint8
}

// prefix is an IPv4 prefix: its address, and its length plus one. Its zero value
// is none.
type prefix struct {
	addr   [4]byte
	length uint8
}

// badPrefix stands for what is no IPv4 prefix. A rule with one can't be encoded,
// so that it need not be known which it was.
const badPrefix = 0xff

func packPrefix(p netip.Prefix) prefix {
	switch {
	case p == netip.Prefix{}:
		return prefix{}
	case !p.IsValid() || !p.Addr().Is4():
		return prefix{length: badPrefix}
	}
	return prefix{p.Addr().As4(), uint8(p.Bits() + 1)}
}

func (p prefix) unpack() netip.Prefix {
	switch p.length {
	case 0:
		return netip.Prefix{}
	case badPrefix:
		return netip.PrefixFrom(netip.IPv4Unspecified(), -1) // not valid
	}
	return netip.PrefixFrom(netip.AddrFrom4(p.addr), int(p.length)-1)
}

func packKey(table uint8, priority uint16, m *flow.Match) key {
	return key{
		table: table, priority: priority,
		portName: m.InPort.Name, portNumber: m.InPort.Number,
		metadata: m.Metadata, tunID: m.TunID.Value, tunIDSet: m.TunID.Set, ctState: m.CTState,
		tpSrc: m.TPSrc, tpDst: m.TPDst, icmpType: m.ICMPType, icmpCode: m.ICMPCode,
		ethType: m.EthType, arpOp: m.ARPOp, vlan: m.VLAN, ethSrc: m.EthSrc, ethDst: m.EthDst, ipProto: m.IPProto,
		ipSrc: packPrefix(m.IPSrc), ipDst: packPrefix(m.IPDst), arpSPA: packPrefix(m.ARPSPA), arpTPA: packPrefix(m.ARPTPA),
	}
}

// inPort is the port that k matches.
func (k *key) inPort() flow.Port { return flow.Port{Name: k.portName, Number: k.portNumber} }

// match is the match of k, the port by name.
func (k *key) match() flow.Match {
	return flow.Match{
		InPort: k.inPort(), Metadata: k.metadata, TunID: flow.OptUint64{Value: k.tunID, Set: k.tunIDSet}, CTState: k.ctState,
		TPSrc: k.tpSrc, TPDst: k.tpDst, ICMPType: k.icmpType, ICMPCode: k.icmpCode,
		EthType: k.ethType, ARPOp: k.arpOp, VLAN: k.vlan, EthSrc: k.ethSrc, EthDst: k.ethDst, IPProto: k.ipProto,
		IPSrc: k.ipSrc.unpack(), IPDst: k.ipDst.unpack(), ARPSPA: k.arpSPA.unpack(), ARPTPA: k.arpTPA.unpack(),
	}
}
