package arp

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"kvnet/model"
)

// Operations of a Packet.
const (
	Request uint16 = 1
	Reply   uint16 = 2
)

const (
	etherTypeARP  = 0x0806
	etherTypeIPv4 = 0x0800
	etherTypeVLAN = 0x8100

	ethernetLen = 14
	vlanLen     = 4
	packetLen   = 28
	minFrameLen = 60 // an Ethernet frame without its check sum
)

var broadcast = model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Packet is an ARP packet for IPv4 over Ethernet.
type Packet struct {
	Op        uint16
	SenderMAC model.MAC
	SenderIP  netip.Addr
	TargetMAC model.MAC
	TargetIP  netip.Addr
	VLAN      uint16 // the VLAN id of a frame that was read; 0: none
}

// Gratuitous tells whether the sender speaks of its own address, asked by nobody.
func (p Packet) Gratuitous() bool { return p.SenderIP == p.TargetIP }

// RequestFrame is the broadcast that asks for the MAC of target, padded to the
// length of the shortest Ethernet frame. Both addresses are IPv4.
func RequestFrame(mac model.MAC, ip, target netip.Addr) []byte {
	b := frame(broadcast, Packet{Op: Request, SenderMAC: mac, SenderIP: ip, TargetIP: target})
	return append(b, make([]byte, minFrameLen-len(b))...)
}

// GratuitousFrame is the broadcast reply that tells everybody that ip is at mac.
// It is not padded, as ONOS sends it.
func GratuitousFrame(mac model.MAC, ip netip.Addr) []byte {
	return frame(broadcast, Packet{Op: Reply, SenderMAC: mac, SenderIP: ip, TargetMAC: broadcast, TargetIP: ip})
}

// Tagged is the frame b with a VLAN tag; b itself if id is 0.
func Tagged(b []byte, id uint16) []byte {
	if id == 0 {
		return b
	}
	tagged := make([]byte, 0, len(b)+vlanLen)
	tagged = append(tagged, b[:12]...) // behind the addresses
	tagged = binary.BigEndian.AppendUint16(tagged, etherTypeVLAN)
	tagged = binary.BigEndian.AppendUint16(tagged, id)
	return append(tagged, b[12:]...)
}

func frame(dst model.MAC, p Packet) []byte {
	b := make([]byte, 0, minFrameLen)
	b = append(b, dst[:]...)
	b = append(b, p.SenderMAC[:]...)
	b = binary.BigEndian.AppendUint16(b, etherTypeARP)
	b = binary.BigEndian.AppendUint16(b, 1) // Ethernet
	b = binary.BigEndian.AppendUint16(b, etherTypeIPv4)
	b = append(b, 6, 4) // lengths of the addresses
	b = binary.BigEndian.AppendUint16(b, p.Op)
	b = append(b, p.SenderMAC[:]...)
	b = append(b, p.SenderIP.AsSlice()...)
	b = append(b, p.TargetMAC[:]...)
	return append(b, p.TargetIP.AsSlice()...)
}

// ErrNotARP says that a frame holds no ARP packet for IPv4 over Ethernet.
var ErrNotARP = errors.New("the frame holds no ARP packet for IPv4 over Ethernet")

// Parse reads the ARP packet of a frame, with or without one VLAN tag.
func Parse(b []byte) (Packet, error) {
	if len(b) < ethernetLen {
		return Packet{}, ErrNotARP
	}
	etherType, rest := binary.BigEndian.Uint16(b[12:]), b[ethernetLen:]
	vlan := uint16(0)
	if etherType == etherTypeVLAN {
		if len(rest) < vlanLen {
			return Packet{}, ErrNotARP
		}
		vlan = binary.BigEndian.Uint16(rest) & 0xfff
		etherType, rest = binary.BigEndian.Uint16(rest[2:]), rest[vlanLen:]
	}
	if etherType != etherTypeARP || len(rest) < packetLen {
		return Packet{}, ErrNotARP
	}
	if binary.BigEndian.Uint16(rest) != 1 || binary.BigEndian.Uint16(rest[2:]) != etherTypeIPv4 || rest[4] != 6 || rest[5] != 4 {
		return Packet{}, ErrNotARP
	}
	return Packet{
		Op:        binary.BigEndian.Uint16(rest[6:]),
		SenderMAC: model.MAC(rest[8:14]),
		SenderIP:  netip.AddrFrom4([4]byte(rest[14:18])),
		TargetMAC: model.MAC(rest[18:24]),
		TargetIP:  netip.AddrFrom4([4]byte(rest[24:28])),
		VLAN:      vlan,
	}, nil
}
