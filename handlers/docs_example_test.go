package handlers_test

import (
	"fmt"
	"net/netip"
	"testing"

	"kvnet/handlers/all"
	"kvnet/handlers/internal/handlertest"
	"kvnet/model"
	"kvnet/southbound/flow"
)

// pageSwitch is a bridge of the page's example.
type pageSwitch struct {
	node, bridge string
	dpid         model.DPID
	ports        map[string]uint32 // numbers as in the page's dumps
}

var pageSwitches = []pageSwitch{
	{"gw1", "br-int", 0xa1, map[string]uint32{"int-to-flt": 1, "int-to-tun": 2, "int-to-external": 3}},
	{"gw2", "br-int", 0xa2, map[string]uint32{"int-to-tun": 1, "int-to-flt": 2, "int-to-external": 3}},
	{"gw2", "br-tun", 0xb2, map[string]uint32{"tun-to-int": 1, "gre": 2, "geneve": 3, "vxlan": 4}},
	{"gw1", "br-external", 0xe1, nil},
	{"w1", "br-int", 0xcb, nil},
}

// pageState is the configuration that the page's dumps were taken with.
func pageState(t *testing.T) *handlertest.Lab {
	l := handlertest.New(t)
	gw1 := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw1.PhysIntfs = []model.PhysicalIntf{{Network: "external", PhysBridge: model.DeviceID(model.DPID(0xe1).String())}}
	l.Put(gw1, handlertest.Node(model.NodeGateway, "gw2", 2),
		handlertest.Node(model.NodeWorker, "w1", 11), handlertest.Node(model.NodeWorker, "w2", 12))
	l.Put(&model.NodeStatus{Hostname: "gw2", ExternalMAC: model.MAC{0xfe, 0, 0, 0, 0, 3}, Life: 1})
	l.Put(
		handlertest.Network(model.NetworkFLAT, "ext", "", "172.16.0.0/24"),
		handlertest.Network(model.NetworkVLAN, "ext-vlan", "100", "172.17.0.0/24"),
		handlertest.Network(model.NetworkFLAT, "flat1", "", "192.168.10.0/24"),
		handlertest.Network(model.NetworkFLAT, "flat2", "", "192.168.20.0/24"),
		handlertest.Network(model.NetworkVLAN, "vlan1", "101", "192.168.11.0/24"),
		handlertest.Network(model.NetworkVLAN, "vlan2", "102", "192.168.21.0/24"),
		handlertest.Network("VXLAN", "vx1", "5001", "192.168.12.0/24"),
		handlertest.Port(0x31, "flat1", "192.168.10.31", "cb"), handlertest.Port(0x32, "flat1", "192.168.10.32", "cc"),
		handlertest.Port(0x41, "vlan1", "192.168.11.41", "cb"), handlertest.Port(0x42, "vlan1", "192.168.11.42", "cc"),
		handlertest.Port(0x51, "vx1", "192.168.12.51", "cb"), handlertest.Port(0x61, "flat2", "192.168.20.61", "cb"),
	)
	for i, r := range []struct {
		gateway, network, ip, peer string
		mac                        model.MAC
		internal                   []string
	}{
		{"gw1", "ext", "172.16.0.100", "172.16.0.1", handlertest.PeerMAC, []string{"flat1"}},
		{"gw1", "ext-vlan", "172.17.0.100", "172.17.0.1", model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 0x64}, []string{"vlan1"}},
		{"gw2", "ext", "172.16.0.102", "172.16.0.1", handlertest.PeerMAC, []string{"vx1"}},
		{"gw1", "ext", "172.16.0.104", "172.16.0.1", handlertest.PeerMAC, []string{"flat2", "vlan2"}},
	} {
		router := handlertest.Router(fmt.Sprintf("r%d", i+1), r.internal...)
		router.MAC[5] = byte(0x0a + i)
		router.External = &model.External{IPText: r.ip, NetworkID: r.network}
		router.Peer = &model.PeerRouter{IP: netip.MustParseAddr(r.peer)}
		l.Put(router)
		l.Decide(router.Name, func(s *model.RouterStatus) {
			s.Gateway, s.PeerIP, s.PeerMAC, s.Zone = r.gateway, router.Peer.IP, r.mac, uint16(i+1)
		})
	}
	for i, b := range []struct {
		name, vip, network string
		members            []string
		rules              []model.LoadBalancerRule
	}{
		{"web", "192.168.10.200", "flat1", []string{"192.168.10.31", "192.168.10.32"},
			[]model.LoadBalancerRule{pageRule("TCP", 80, 80), pageRule("UDP", 5000, 5003), {Protocol: "ICMP"}}},
		{"vweb", "192.168.11.200", "vlan1", []string{"192.168.11.41", "192.168.11.42"}, []model.LoadBalancerRule{pageRule("TCP", 80, 80)}},
		{"xweb", "192.168.12.200", "vx1", []string{"192.168.12.51"}, []model.LoadBalancerRule{pageRule("TCP", 80, 80)}},
		{"twin", "192.168.10.200", "flat2", []string{"192.168.20.61"}, []model.LoadBalancerRule{pageRule("TCP", 80, 80)}},
	} {
		lb := &model.LoadBalancer{Name: b.name, VIP: netip.MustParseAddr(b.vip), NetworkID: b.network, Rules: b.rules}
		for _, m := range b.members {
			lb.Members = append(lb.Members, netip.MustParseAddr(m))
		}
		l.Put(lb)
		l.Put(&model.LoadBalancerStatus{Name: b.name, Life: lb.Created, GroupID: flow.GroupIDMin + uint32(i)})
	}
	l.Put(
		&model.FloatingIP{ID: "f1", RouterName: "r1", NetworkName: "ext", FloatingIP: netip.MustParseAddr("172.16.0.150"), FixedIP: netip.MustParseAddr("192.168.10.200")},
		&model.FloatingIP{ID: "f2", RouterName: "r2", NetworkName: "ext-vlan", FloatingIP: netip.MustParseAddr("172.17.0.150"), FixedIP: netip.MustParseAddr("192.168.11.200")},
	)
	return l
}

func pageRule(protocol string, min, max int32) model.LoadBalancerRule {
	return model.LoadBalancerRule{Protocol: protocol, PortRangeMin: &min, PortRangeMax: &max}
}

// numbered fills in the numbers of a switch's ports.
func (s pageSwitch) numbered(p flow.Port) flow.Port {
	if n, ok := s.ports[p.Name]; ok {
		return flow.NumberedPort(n)
	}
	return p
}

func (s pageSwitch) actions(list []flow.Action) (out []flow.Action) {
	for _, a := range list {
		if o, ok := a.(flow.Output); ok {
			o.Port = s.numbered(o.Port)
			a = o
		}
		out = append(out, a)
	}
	return out
}

// pageWants are the rules and groups that the handlers compute for the page's
// example, by "node bridge", as text.
func pageWants(t *testing.T) (texts map[string][]string, rules map[string][]flow.Rule) {
	texts, rules = map[string][]string{}, map[string][]flow.Rule{}
	snap := pageState(t).DB.Snapshot()
	for _, h := range all.Handlers() {
		for _, o := range h.Owners(snap) {
			set, waiting := h.Rules(snap, o)
			if len(waiting) != 0 {
				t.Errorf("%s waits for %v: the example is not whole", o, waiting)
			}
			for _, s := range pageSwitches {
				name := s.node + " " + s.bridge
				for _, r := range set.Rules {
					if r.Switch == s.dpid {
						r.Match.InPort, r.Actions = s.numbered(r.Match.InPort), s.actions(r.Actions)
						texts[name], rules[name] = append(texts[name], r.String()), append(rules[name], r)
					}
				}
				for _, g := range set.Groups {
					if g.Switch == s.dpid {
						for i := range g.Buckets {
							g.Buckets[i].Actions = s.actions(g.Buckets[i].Actions)
						}
						texts[name] = append(texts[name], g.String())
					}
				}
			}
		}
	}
	return texts, rules
}
