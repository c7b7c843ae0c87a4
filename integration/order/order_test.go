package order

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// sequences is how many random sequences are played; each goes on where the last
// one ended. KVNET_TEST_SEQUENCES sets another number.
func sequences(t *testing.T) int {
	if s := os.Getenv("KVNET_TEST_SEQUENCES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 2000
}

func TestAnyOrderEndsInTheSameRules(t *testing.T) {
	const worlds = 4
	for i := range worlds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			seed := uint64(i + 1)
			w := newWorld(t, seed)
			for n := range sequences(t) / worlds {
				w.log = w.log[:0]
				w.note("sequence %d", n)
				for range 1 + w.rnd.IntN(12) {
					w.step()
				}
				w.settles(seed)
				w.expectOrder(seed)
			}
			if d := w.recomputeDifferences(); d != 0 {
				t.Errorf("the full recompute found %v differences", d)
			}
		})
	}
}

func pick[T any](w *world, xs ...T) T { return xs[w.rnd.IntN(len(xs))] }

func (w *world) addr4(third int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 10, byte(third), byte(10 + w.rnd.IntN(4))})
}

// step does one random thing.
func (w *world) step() {
	switch w.rnd.IntN(16) {
	case 0:
		w.node()
	case 1, 2:
		w.network()
	case 3, 4:
		w.router()
	case 5, 6, 7:
		w.port()
	case 8:
		w.floatingIP()
	case 9, 10, 11:
		w.balancer()
	case 12, 13:
		w.cable()
	case 14:
		w.plug()
	case 15:
		w.meddle()
	}
}

// put writes an object, or deletes it one time in four.
func (w *world) put(o model.Object) {
	if w.rnd.IntN(4) == 0 {
		if w.db.Snapshot().Get(o.Kind(), o.Key()) != nil {
			w.note("delete %s %s", o.Kind(), o.Key())
			w.store.put(w.t, o.Kind(), o.Key(), nil)
		}
		return
	}
	w.note("put %s %+v", o.Kind(), o)
	w.store.put(w.t, o.Kind(), o.Key(), o)
}

var nodes = []struct {
	name     string
	kind     model.NodeType
	int, tun model.DPID
}{{"gw1", model.NodeGateway, 0xa1, 0xb1}, {"gw2", model.NodeGateway, 0xa2, 0xb2}, {"w1", model.NodeWorker, 0xc1, 0xd1}, {"w2", model.NodeWorker, 0xc2, 0xd2}}

func (w *world) node() {
	n := pick(w, nodes...)
	ext := pick(w, "ext", "other")
	o := &model.Node{Hostname: n.name, Type: n.kind, ManagementIP: netip.MustParseAddr("192.0.2.1"),
		IntegrationBridge: model.DeviceID(n.int.String()), TunnelBridge: model.DeviceID(n.tun.String())}
	if w.rnd.IntN(5) > 0 {
		o.DataIP = netip.AddrFrom4([4]byte{192, 0, 2, byte(20 + w.rnd.IntN(3))})
	}
	if n.kind == model.NodeGateway {
		o.GatewayBridgeName = &ext
	}
	w.put(o)
}

func (w *world) network() {
	i := w.rnd.IntN(4)
	w.put(&model.Network{ID: fmt.Sprintf("n%d", i), Name: "net", Type: pick(w, model.NetworkFLAT, model.NetworkVLAN, model.NetworkVXLAN, model.NetworkGRE),
		SegmentID: fmt.Sprint(100 + w.rnd.IntN(3)), GatewayIP: netip.AddrFrom4([4]byte{10, 10, byte(i), 1}), CIDR: fmt.Sprintf("10.10.%d.0/24", i)})
}

func (w *world) router() {
	i := w.rnd.IntN(3)
	r := &model.Router{Name: fmt.Sprintf("r%d", i), EnableSNAT: w.rnd.IntN(5) > 0, MAC: model.MAC{0xfa, 0, 0, 0, 0, byte(i + 1)}}
	for n := range 3 {
		if w.rnd.IntN(2) == 0 {
			r.Internal = append(r.Internal, fmt.Sprintf("n%d", n))
		}
	}
	if w.rnd.IntN(5) > 0 {
		r.External = &model.External{IPText: fmt.Sprintf("172.16.0.%d", 100+w.rnd.IntN(3)), NetworkID: pick(w, "n3", "n0")}
	}
	old := w.db.Snapshot().Router(r.Name)
	if w.rnd.IntN(6) > 0 {
		r.Peer = &model.PeerRouter{IP: netip.AddrFrom4([4]byte{172, 16, 0, byte(1 + w.rnd.IntN(2))}), Write: uint64(w.rnd.IntN(3))}
		if w.rnd.IntN(4) > 0 {
			r.Peer.MAC = model.MAC{0x52, 0, 0, 0, 0, byte(1 + w.rnd.IntN(3))}
		}
	}
	if w.rnd.IntN(3) == 0 {
		r.Gateway = pick(w, "gw1", "gw2", "nobody")
		if old != nil {
			r.GatewayWrite = old.GatewayWrite
		}
		r.GatewayWrite++
	}
	w.put(r)
}

func (w *world) port() {
	i := w.rnd.IntN(8)
	n := w.rnd.IntN(4)
	p := &model.Port{VMName: "vm", NetworkID: fmt.Sprintf("n%d", n), MAC: model.MAC{2, 0, 0, 0, 0, byte(i + 1)}}
	if w.rnd.IntN(6) > 0 {
		p.IP = w.addr4(n)
	}
	if w.rnd.IntN(6) > 0 {
		p.DeviceID = model.DeviceID(pick(w, model.DPID(0xc1), 0xc2, 0xc3).String())
	}
	w.put(p)
}

func (w *world) floatingIP() {
	w.put(&model.FloatingIP{ID: fmt.Sprintf("f%d", w.rnd.IntN(3)), RouterName: pick(w, "r0", "r1"), NetworkName: "n3",
		FloatingIP: netip.AddrFrom4([4]byte{172, 16, 0, byte(150 + w.rnd.IntN(2))}), FixedIP: pick(w, w.vip(), w.vip(), w.addr4(0), netip.Addr{})})
}

func (w *world) vip() netip.Addr { return netip.AddrFrom4([4]byte{10, pick[byte](w, 10, 99), 0, 250}) }

func (w *world) balancer() {
	network := w.rnd.IntN(2)
	lb := &model.LoadBalancer{Name: fmt.Sprintf("l%d", w.rnd.IntN(3)), NetworkID: fmt.Sprintf("n%d", network), VIP: w.vip()}
	for i := range 4 {
		if w.rnd.IntN(2) == 0 {
			lb.Members = append(lb.Members, netip.AddrFrom4([4]byte{10, 10, byte(network), byte(10 + i)}))
		}
	}
	for range w.rnd.IntN(3) {
		r := model.LoadBalancerRule{Protocol: pick(w, "TCP", "udp", "ICMP", "SCTP")}
		if r.Protocol != "ICMP" {
			min := int32(80 + w.rnd.IntN(3))
			max := min + int32(w.rnd.IntN(3))
			r.PortRangeMin, r.PortRangeMax = &min, &max
		}
		lb.Rules = append(lb.Rules, r)
	}
	w.put(lb)
}

// cable connects, cuts off or restarts a switch.
func (w *world) cable() {
	n := pick(w, nodes...)
	s := w.sw(pick(w, n.int, n.tun))
	switch {
	case !s.connected:
		w.note("connect %s", s.DPID())
		w.connect(s)
	case w.rnd.IntN(3) == 0:
		w.note("restart %s", s.DPID())
		w.disconnect(s)
		s.Wipe()
		w.connect(s)
	default:
		w.note("cut off %s", s.DPID())
		w.disconnect(s)
	}
}

// plug adds, removes or renumbers a port of a switch.
func (w *world) plug() {
	n := pick(w, nodes...)
	s := w.sw(pick(w, n.int, n.tun))
	name := pick(w, "int-to-ext", "int-to-other", flow.PortIntToTun, "vxlan", "gre")
	if old, ok := s.ports[name]; ok {
		w.note("unplug %s of %s", name, s.DPID())
		s.RemovePort(old)
		delete(s.ports, name)
		if w.rnd.IntN(3) == 0 {
			return
		}
	}
	s.next++
	w.note("plug %s into %s as %d", name, s.DPID(), s.next)
	s.AddPort(s.next, name, true)
	s.ports[name] = s.next
}

// meddle removes rules by hand.
func (w *world) meddle() {
	n := pick(w, nodes...)
	s := w.sw(pick(w, n.int, n.tun))
	if !s.connected {
		return
	}
	w.note("meddle with %s", s.DPID())
	s.RemoveFlows(func(flow.Rule) bool { return w.rnd.IntN(3) == 0 })
}
