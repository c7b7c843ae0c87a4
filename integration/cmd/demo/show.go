package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

var (
	internet = netip.MustParseAddr(lab.InternetIP)
	outside  = netip.MustParseAddr(routerIP)
)

// showPeer shows that the gateway has found the upstream router.
func (d *demo) showPeer(ctx context.Context) error {
	d.Say("The upstream router is found by ARP", "")
	if err := await(ctx, "the MAC of the upstream router", func() error {
		r, err := d.server.Router(ctx, routerName)
		if err == nil && !strings.EqualFold(r.Peer.MAC, lab.PeerMAC) {
			err = fmt.Errorf("it is %q", r.Peer.MAC)
		}
		return err
	}); err != nil {
		return err
	}
	answer, err := d.curl(ctx, http.MethodGet, server.ObjectPath("router", routerName), "")
	if err != nil {
		return err
	}
	fmt.Printf("     %s\n", answer)
	d.OK("%s is at %s, and %s is the router's gateway", lab.PeerIP, lab.PeerMAC, lab.Gateway)
	return nil
}

// showPackets sends TCP, UDP and ICMP from a VM and looks at them outside.
func (d *demo) showPackets(ctx context.Context) error {
	d.Say("A VM reaches the outside with the router's address", "")
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	vm, ext := d.lab.Host(vms[0].name), d.lab.Host(lab.External)
	service := netip.AddrPortFrom(internet, 443)
	tcp, err := probe.ServeTCP(ext.NS, service)
	if err != nil {
		return err
	}
	defer func() { _ = tcp.Close() }()
	udp, err := probe.ServeUDP(ext.NS, service)
	if err != nil {
		return err
	}
	defer func() { _ = udp.Close() }()
	capture, err := probe.StartCapture(ext.NS, "eth0")
	if err != nil {
		return err
	}
	defer func() { _, _ = capture.Stop() }()

	// The rules follow the peer's MAC in a moment; a first ping waits for them.
	if err := probe.Ping(ctx, vm.NS, internet); err != nil {
		return fmt.Errorf("ICMP: %w", err)
	}
	seen, err := probe.AskTCP(ctx, vm.NS, 0, service)
	if err != nil {
		return fmt.Errorf("TCP: %w", err)
	}
	if err := probe.AskUDP(ctx, vm.NS, 0, service); err != nil {
		return fmt.Errorf("UDP: %w", err)
	}
	peers := udp.Peers()
	if seen.Addr() != outside || peers[0].Addr() != outside {
		return fmt.Errorf("seen outside as %s (TCP) and %s (UDP), want %s", seen, peers[0], outside)
	}
	if err := onlyFromRouter(capture); err != nil {
		return err
	}
	fmt.Printf("     %s is %s; %s is behind the upstream router\n", vms[0].name, vms[0].ip, internet)
	d.OK("TCP:  %s:443 saw %s and answered", internet, seen)
	d.OK("UDP:  %s:443 saw %s and answered", internet, peers[0])
	d.OK("ICMP: %s saw %s and answered", internet, outside)
	return nil
}

// onlyFromRouter checks the source of all that came outside, ICMP included.
func onlyFromRouter(c *probe.Capture) error {
	protocols := map[layers.IPProtocol]bool{}
	for _, f := range c.Matching(func(p gopacket.Packet) bool { return p.Layer(layers.LayerTypeIPv4) != nil }) {
		ip, ok := f.Packet().Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if !ok {
			continue
		}
		protocols[ip.Protocol] = true
		if ip.SrcIP.String() != outside.String() {
			return fmt.Errorf("a packet came outside with another source: %s", f)
		}
	}
	for _, p := range []layers.IPProtocol{layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolICMPv4} {
		if !protocols[p] {
			return fmt.Errorf("no %s packet was captured outside", p)
		}
	}
	return nil
}

// showRules shows the rules of an owner, and the groups that they use, and finds
// each on its switch.
func (d *demo) showRules(ctx context.Context, what, owner string) error {
	d.Say(what+", and whose they are", "")
	answer, err := d.curl(ctx, http.MethodGet, "/kvnet/v1/flows?owner="+owner, "")
	if err != nil {
		return err
	}
	var report struct {
		Flows []server.Flow `json:"flows"`
	}
	if err := json.Unmarshal([]byte(answer), &report); err != nil {
		return fmt.Errorf("decode the rules: %w", err)
	}
	return d.findAll(ctx, report.Flows)
}

// findAll prints rules and groups by owner and finds each on gw1's br-int.
func (d *demo) findAll(ctx context.Context, flows []server.Flow) error {
	if len(flows) == 0 {
		return errors.New("there are none")
	}
	rules, err := d.lab.Node(lab.Gateway).Flows(ctx, lab.BrInt)
	if err != nil {
		return err
	}
	groups, err := d.lab.Node(lab.Gateway).Groups(ctx, lab.BrInt)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, f := range rules {
		held[f.String()] = true
	}
	for _, g := range groups {
		held[fmt.Sprint(g)] = true
	}
	owner := ""
	for _, f := range flows {
		if f.Owner != owner {
			owner = f.Owner
			fmt.Printf("   %s\n", owner)
		}
		fmt.Printf("     %s\n", f.Rule)
		text, err := normalised(f.Rule)
		if err != nil {
			return err
		}
		if f.State != "installed" || !held[text] {
			return fmt.Errorf("the rule is %s and not on the switch as ovs-ofctl prints it", f.State)
		}
	}
	d.OK("ovs-ofctl shows all %d of them on br-int of %s", len(flows), lab.Gateway)
	return nil
}

// normalised is the text of a rule or group without the order of its words.
func normalised(text string) (string, error) {
	if g, err := ovs.ParseGroup(text); err == nil {
		return fmt.Sprint(g), nil
	}
	rule, err := ovs.ParseFlow(text)
	return rule.String(), err
}
