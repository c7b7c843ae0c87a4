package snat_test

import (
	"net/netip"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/model"
)

func TestAllRulesOfARouter(t *testing.T) {
	l := newLab(t)
	l.Want("Snat-A, Snat-U, Snat-D and the drops", "snat/r1", r1Rules(1)+portRules(1))
	l.Want("Snat-P of a FLAT network", "snat/r1/port/"+vmF, snatP(1, "192.168.10.31", vmF))
	l.Want("Snat-P and Snat-T of a tunnel network", "snat/r1/port/"+vmA,
		snatP(1, "10.10.0.11", vmA)+snatT(1, "10.10.0.11", vmA, "0x3e8", "10.0.0.1", "vxlan"))
}

func TestTheTunnelPortIsNamedByTheNetworksType(t *testing.T) {
	for kind, port := range map[model.NetworkType]string{
		model.NetworkVXLAN: "vxlan", model.NetworkGRE: "gre", model.NetworkGENEVE: "geneve", model.NetworkSTT: "stt",
	} {
		l := newLab(t)
		l.Put(handlertest.Network(kind, "net1", "7", "10.10.0.0/24"))
		l.Want(string(kind), "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+snatT(1, "10.10.0.11", vmA, "0x7", "10.0.0.1", port))
	}
}

func TestRulesAppearWhenWhatTheyNeedAppears(t *testing.T) {
	for name, c := range map[string]struct {
		take    func(l *handlertest.Lab)
		waiting string
		give    func(l *handlertest.Lab)
	}{
		"gateway": {
			func(l *handlertest.Lab) { l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "" }) }, "gateway for router r1",
			func(l *handlertest.Lab) { l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw1" }) },
		},
		"gateway's node": {
			func(l *handlertest.Lab) { l.Delete(model.KindNode, "gw1") }, "node gw1",
			func(l *handlertest.Lab) { l.Put(handlertest.Node(model.NodeGateway, "gw1", 1)) },
		},
		"gateway's integration bridge": {
			func(l *handlertest.Lab) {
				n := handlertest.Node(model.NodeGateway, "gw1", 1)
				n.IntegrationBridge = "x"
				l.Put(n)
			}, "integration bridge of node gw1",
			func(l *handlertest.Lab) { l.Put(handlertest.Node(model.NodeGateway, "gw1", 1)) },
		},
		"MAC of the peer": {
			func(l *handlertest.Lab) {
				l.Decide("r1", func(s *model.RouterStatus) { s.PeerMAC = model.MAC{} })
			}, "MAC of peer router 172.16.0.1",
			func(l *handlertest.Lab) { l.Complete("r1", "gw1", 1) },
		},
		"MAC of this peer, not of the one before": {
			func(l *handlertest.Lab) {
				l.Decide("r1", func(s *model.RouterStatus) { s.PeerIP = handlertest.SNATIP })
			}, "MAC of peer router 172.16.0.1",
			func(l *handlertest.Lab) { l.Complete("r1", "gw1", 1) },
		},
		"zone": {
			func(l *handlertest.Lab) { l.Decide("r1", func(s *model.RouterStatus) { s.Zone = 0 }) }, "conntrack zone of router r1",
			func(l *handlertest.Lab) { l.Complete("r1", "gw1", 1) },
		},
		"peer": {
			func(l *handlertest.Lab) { l.Edit("r1", func(r *model.Router) { r.Peer = nil }) }, "IPv4 address of the peer router of router r1",
			func(l *handlertest.Lab) {
				l.Edit("r1", func(r *model.Router) { r.Peer = &model.PeerRouter{IP: handlertest.PeerIP} })
			},
		},
		"external address": {
			func(l *handlertest.Lab) {
				l.Edit("r1", func(r *model.Router) { r.External = &model.External{IPText: "x", NetworkID: "ext-net"} })
			}, "external IPv4 address of router r1",
			func(l *handlertest.Lab) {
				l.Edit("r1", func(r *model.Router) { r.External = handlertest.Router("r1").External })
			},
		},
		"external network's id": {
			func(l *handlertest.Lab) {
				l.Edit("r1", func(r *model.Router) { r.External = &model.External{IPText: handlertest.SNATIP.String()} })
			}, "external network of router r1",
			func(l *handlertest.Lab) {
				l.Edit("r1", func(r *model.Router) { r.External = handlertest.Router("r1").External })
			},
		},
		"MAC of the router": {
			func(l *handlertest.Lab) { l.Edit("r1", func(r *model.Router) { r.MAC = model.MAC{} }) }, "MAC of router r1",
			func(l *handlertest.Lab) { l.Edit("r1", func(r *model.Router) { r.MAC = handlertest.RouterMAC }) },
		},
	} {
		l := newLab(t)
		c.take(l)
		l.Want(name+" missing", "snat/r1", "waits for "+c.waiting+`
			waits for SNAT of router r1
			waits for SNAT of router r1
			waits for SNAT of router r1`)
		c.give(l)
		l.Want(name+" back", "snat/r1", r1Rules(1)+portRules(1))
	}
}

func TestAWrittenPeerMACCountsBeforeItIsDecided(t *testing.T) {
	l := newLab(t)
	l.Edit("r1", func(r *model.Router) {
		r.Peer = &model.PeerRouter{IP: netip.MustParseAddr("172.16.0.2"), MAC: model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 2}, Write: 1}
	})
	l.Has("another peer leaves no moment without rules", "set_field:52:54:00:aa:bb:02->eth_dst")
	l.Decide("r1", func(s *model.RouterStatus) {
		s.PeerIP, s.PeerMAC, s.PeerWrite = netip.MustParseAddr("172.16.0.2"), model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 3}, 1
	})
	l.Has("the decided one counts then", "set_field:52:54:00:aa:bb:03->eth_dst")
}

func TestOnlyTheRulesThatNeedAnObjectWaitForIt(t *testing.T) {
	l := newLab(t)
	l.Delete(model.KindNetwork, "ext-net")
	l.HasNot("Snat-D", "nw_dst=172.16.0.100")
	l.Has("the rest stays", "arp_tpa=172.16.0.100")
	l.Has("waiting", "waits for network ext-net")

	l = newLab(t)
	l.Delete(model.KindNetwork, "net1")
	l.Want("Snat-P needs no network", "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+"\nwaits for network net1")
	l.HasNot("no drop without prefix", "nw_dst=10.10.0.0/24")

	l = newLab(t)
	l.Delete(model.KindNode, "w1")
	l.Want("Snat-T needs the worker", "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+"\nwaits for worker with integration bridge of:00000000000000c1")
	w := handlertest.Node(model.NodeWorker, "w1", 1)
	w.DataIP = model.Node{}.DataIP
	l.Put(w)
	l.Want("and its data address", "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+"\nwaits for IPv4 data address of node w1")
	l.Put(handlertest.Port(0x11, "net1", "10.10.0.11", ""))
	l.Want("and the port's place", "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+"\nwaits for place of port "+vmA)

	l = newLab(t)
	l.Put(handlertest.Network(model.NetworkVXLAN, "net1", "", "10.10.0.0/24"))
	l.Want("and the segment id", "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+"\nwaits for segment id of network net1")
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.TunnelBridge = ""
	l.Put(gw)
	l.Want("and the tunnel bridge", "snat/r1/port/"+vmA, snatP(1, "10.10.0.11", vmA)+"\nwaits for tunnel bridge of node gw1")
}

func TestPortsComeAndGo(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Port(0x13, "net1", "10.10.0.13", "c2"))
	l.Want("created", "snat/r1/port/fa:16:3e:00:00:13", snatP(1, "10.10.0.13", "fa:16:3e:00:00:13")+snatT(1, "10.10.0.13", "fa:16:3e:00:00:13", "0x3e8", "10.0.0.2", "vxlan"))
	l.Put(handlertest.Port(0x13, "net1", "10.10.0.13", "c1"))
	l.Has("moved to another worker", "dl_dst=fa:16:3e:00:00:13,nw_dst=10.10.0.13,actions=set_field:0x3e8->tun_id,set_field:10.0.0.1->tun_dst")
	l.Delete(model.KindPort, "fa:16:3e:00:00:13")
	l.Want("deleted", "snat/r1", r1Rules(1)+portRules(1))
}

func TestTwoRoutersOfOneNetworkEachHaveTheirRules(t *testing.T) {
	l := newLab(t)
	r2 := handlertest.Router("r2", "flat1")
	r2.MAC[5] = 0x0b
	r2.External.IPText = "172.16.0.200"
	l.Put(r2)
	l.Complete("r2", "gw1", 2)
	l.Has("first", "dl_src=fa:00:00:00:00:0a,nw_dst=192.168.10.31")
	l.Has("second", "dl_src=fa:00:00:00:00:0b,nw_dst=192.168.10.31")
}

func TestIPv6IsIgnored(t *testing.T) {
	l := newLab(t)
	l.Put(handlertest.Port(0x14, "net1", "fd00::14", "c1"), handlertest.Network(model.NetworkFLAT, "flat6", "", "fd00::/64"))
	l.Edit("r1", func(r *model.Router) { r.Internal = []string{"flat1", "flat6", "net1"} })
	l.Want("nothing is added", "snat/r1", r1Rules(1)+portRules(1))
}
