package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"kvnet/integration/netns"
	"kvnet/model"
)

// ARP is the content of an ARP packet.
type ARP struct {
	Reply              bool
	SenderMAC          model.MAC
	SenderIP           netip.Addr
	TargetMAC          model.MAC
	TargetIP           netip.Addr
	EthernetSource     model.MAC
	EthernetTarget     model.MAC
	Length             int
	VLANTagged         bool
	HardwareAndLengths bool // Ethernet and IPv4 with address lengths 6 and 4
}

// ParseARP decodes an ARP packet; ok is false if p is none.
func ParseARP(p gopacket.Packet) (a ARP, ok bool) {
	arp, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP)
	if !ok {
		return a, false
	}
	ethernet, ok := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !ok {
		return a, false
	}
	a = ARP{
		Reply:              arp.Operation == layers.ARPReply,
		Length:             len(p.Data()),
		VLANTagged:         p.Layer(layers.LayerTypeDot1Q) != nil,
		HardwareAndLengths: arp.AddrType == layers.LinkTypeEthernet && arp.Protocol == layers.EthernetTypeIPv4 && arp.HwAddressSize == 6 && arp.ProtAddressSize == 4,
	}
	copy(a.SenderMAC[:], arp.SourceHwAddress)
	copy(a.TargetMAC[:], arp.DstHwAddress)
	copy(a.EthernetSource[:], ethernet.SrcMAC)
	copy(a.EthernetTarget[:], ethernet.DstMAC)
	a.SenderIP, _ = netip.AddrFromSlice(arp.SourceProtAddress)
	a.TargetIP, _ = netip.AddrFromSlice(arp.DstProtAddress)
	return a, true
}

// IsARP accepts ARP packets that match accepts.
func IsARP(match func(ARP) bool) func(gopacket.Packet) bool {
	return func(p gopacket.Packet) bool {
		a, ok := ParseARP(p)
		return ok && match(a)
	}
}

// RequestARP asks who has target, from iface in ns with the given sender, and
// returns the first answer.
func RequestARP(ctx context.Context, ns *netns.NS, iface string, senderMAC model.MAC, sender, target netip.Addr) (ARP, error) {
	c, err := StartCapture(ns, iface)
	if err != nil {
		return ARP{}, err
	}
	defer func() { _, _ = c.Stop() }()
	frame, err := serialize(
		&layers.Ethernet{SrcMAC: senderMAC[:], DstMAC: net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPRequest, SourceHwAddress: senderMAC[:], SourceProtAddress: sender.AsSlice(),
			DstHwAddress: make([]byte, 6), DstProtAddress: target.AsSlice(),
		})
	if err != nil {
		return ARP{}, err
	}
	if err := SendFrame(ns, iface, frame); err != nil {
		return ARP{}, err
	}
	replies, err := c.Wait(ctx, 1, IsARP(func(a ARP) bool { return a.Reply && a.SenderIP == target }))
	if err != nil {
		return ARP{}, fmt.Errorf("ask who has %s: %w", target, err)
	}
	a, _ := ParseARP(replies[0].Packet())
	return a, nil
}

// SendARPReply tells targetMAC and target that sender is at senderMAC, from iface
// in ns.
func SendARPReply(ns *netns.NS, iface string, senderMAC model.MAC, sender netip.Addr, targetMAC model.MAC, target netip.Addr) error {
	frame, err := serialize(
		&layers.Ethernet{SrcMAC: senderMAC[:], DstMAC: targetMAC[:], EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPReply, SourceHwAddress: senderMAC[:], SourceProtAddress: sender.AsSlice(),
			DstHwAddress: targetMAC[:], DstProtAddress: target.AsSlice(),
		})
	if err != nil {
		return err
	}
	return SendFrame(ns, iface, frame)
}

func serialize(l ...gopacket.SerializableLayer) ([]byte, error) {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		return nil, fmt.Errorf("build packet: %w", err)
	}
	return b.Bytes(), nil
}
