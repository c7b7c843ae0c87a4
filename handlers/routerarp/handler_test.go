package routerarp_test

import (
	"net/netip"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/routerarp"
	"kvnet/model"
)

const (
	arpP = "a1 table=31,priority=41000,arp,arp_spa=172.16.0.1,arp_tpa=172.16.0.100,arp_op=2,actions=CONTROLLER:65535"
	garp = `
		a1 table=31,priority=41000,arp,in_port="int-to-external",arp_spa=172.16.0.1,arp_tpa=172.16.0.1,arp_op=1,actions=CONTROLLER:65535
		a1 table=31,priority=41000,arp,in_port="int-to-external",arp_spa=172.16.0.1,arp_tpa=172.16.0.1,arp_op=2,actions=CONTROLLER:65535`
)

func newLab(t *testing.T) *handlertest.Lab {
	l := handlertest.New(t, routerarp.New())
	l.Put(handlertest.Node(model.NodeGateway, "gw1", 1), handlertest.Node(model.NodeGateway, "gw2", 2), handlertest.Router("r1"))
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw1" })
	return l
}

func TestA4ThePeersARPComesToTheControllerAlsoWhenItsMACIsKnown(t *testing.T) {
	l := newLab(t)
	l.Want("unknown", "routerarp/r1", arpP+garp)
	l.Complete("r1", "gw1", 1)
	l.Want("known", "routerarp/r1", arpP+garp)
	l.Edit("r1", func(r *model.Router) { r.EnableSNAT = false })
	l.Want("SNAT off", "routerarp/r1", arpP+garp)
}

func TestA3AMissingPeerOrExternalNetworkIsNoFault(t *testing.T) {
	for name, change := range map[string]func(*model.Router){
		"no peer":             func(r *model.Router) { r.Peer = nil },
		"no peer address":     func(r *model.Router) { r.Peer = &model.PeerRouter{} },
		"IPv6 peer":           func(r *model.Router) { r.Peer = &model.PeerRouter{IP: netip.MustParseAddr("fd00::1")} },
		"no external network": func(r *model.Router) { r.External = nil },
		"no SNAT address":     func(r *model.Router) { r.External = &model.External{NetworkID: "ext-net"} },
	} {
		l := newLab(t)
		l.Edit("r1", change)
		l.Want(name, "", "")
	}
}

func TestTheRulesMoveWithTheGatewayAndEndWithTheRouter(t *testing.T) {
	l := newLab(t)
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "gw2" })
	l.HasNot("moved", "a1 ")
	l.Has("moved", "a2 table=31,priority=41000,arp,arp_spa=172.16.0.1")
	l.Delete(model.KindNode, "gw2")
	l.Want("the node is gone", "", "waits for node gw2")
	l.Decide("r1", func(s *model.RouterStatus) { s.Gateway = "" })
	l.Want("no gateway", "", "waits for gateway for router r1")
	l.Delete(model.KindRouter, "r1")
	l.Want("the router is gone", "", "")
}

func TestAGatewayWithoutAWayOutWaits(t *testing.T) {
	l := newLab(t)
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.GatewayBridgeName = nil
	l.Put(gw)
	l.Want("answers can come, gratuitous ARP can't", "", arpP+"\nwaits for gatewayBridgeName of node gw1")
}

func TestN3ALongOuterNetworkIsCutAsItsPort(t *testing.T) {
	l := newLab(t)
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	outer := "external-network"
	gw.GatewayBridgeName = &outer
	l.Put(gw)
	l.Has("15 characters", `in_port="int-to-external"`)
}
