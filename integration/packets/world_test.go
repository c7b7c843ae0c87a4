package packets

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/server"
	"kvnet/model"
)

// The addresses of the reference topology.
const (
	routerMACText = "fa:00:00:00:00:0a"

	vmAMAC = "fa:16:3e:00:00:11"
	vmBMAC = "fa:16:3e:00:00:12"
	vmCMAC = "fa:16:3e:00:00:21"
	vmDMAC = "fa:16:3e:00:00:14"
	vmFMAC = "fa:16:3e:00:00:31"
)

var (
	snatIP    = netip.MustParseAddr("172.16.0.100")
	peerIP    = netip.MustParseAddr(lab.PeerIP)
	peerMAC   = mustMAC(lab.PeerMAC)
	internet  = netip.MustParseAddr(lab.InternetIP)
	outside   = mustMAC("fe:00:00:00:00:02") // what SNAT answers and leaves with
	broadcast = mustMAC("ff:ff:ff:ff:ff:ff")
	routerMAC = mustMAC(routerMACText)

	gatewayFlat1 = netip.MustParseAddr("192.168.10.1")
	gatewayFlat2 = netip.MustParseAddr("192.168.20.1")
)

const (
	// soon is how long the switches may take to follow a write.
	soon = 5 * time.Second
	// never is how long a test watches for something that must not happen.
	never = 1500 * time.Millisecond
)

// world is the reference topology with FLAT networks and a server: flat1 and
// flat2 behind router r1, which leaves through gw1.
type world struct {
	*harness.Flat
	t   *testing.T
	ctx context.Context

	vlans    map[string]uint16 // of networks that have one
	router   map[string]any
	ext      *lab.Host
	services struct{ tcp, udp *probe.Service }
}

// vm is a VM of the reference topology.
type vm struct{ name, network, worker, mac, ip, gateway string }

var (
	vmA = vm{"vma", "flat2", "w1", vmAMAC, "192.168.20.11", "192.168.20.1"}
	vmB = vm{"vmb", "flat2", "w2", vmBMAC, "192.168.20.12", "192.168.20.1"}
	vmC = vm{"vmc", "flat1", "w2", vmCMAC, "192.168.10.21", "192.168.10.1"}
	vmD = vm{"vmd", "flat2", "w1", vmDMAC, "192.168.20.14", "192.168.20.1"}
	vmF = vm{"vmf", "flat1", "w1", vmFMAC, "192.168.10.31", "192.168.10.1"}
)

// newWorld builds the topology and writes the networks. The router is written by
// each test.
func newWorld(t *testing.T, c lab.FlatConfig, o harness.Options) *world {
	t.Helper()
	return newWorldOf(t, c, o, network{id: "flat1", subnet: "192.168.10"}, network{id: "flat2", subnet: "192.168.20"})
}

// network is a FLAT network or, with a VLAN id, a VLAN network.
type network struct {
	id, subnet string
	vlan       uint16
}

// newWorldOf is newWorld with other networks behind r1.
func newWorldOf(t *testing.T, c lab.FlatConfig, o harness.Options, internal ...network) *world {
	t.Helper()
	w := &world{t: t, ctx: harness.Context(t, 10*time.Minute), vlans: map[string]uint16{}}
	w.Flat = harness.StartFlat(t, w.ctx, c, o)
	w.ext = w.Host(lab.External)
	var ids []string
	for _, n := range internal {
		w.createNetwork(n)
		ids = append(ids, n.id)
	}
	w.createNetwork(network{"ext-net", "172.16.0", c.ExternalVLAN})
	w.router = map[string]any{
		"name": "r1", "mac": routerMACText, "enableSnat": true, "internal": ids,
		"external":   map[string]any{"ip": snatIP.String(), "network": "ext-net"},
		"peerRouter": map[string]any{"ip": lab.PeerIP},
	}
	return w
}

func (w *world) createNetwork(n network) {
	w.t.Helper()
	body := map[string]any{
		"networkId": n.id, "type": "FLAT", "name": n.id, "mtu": 1500, "gatewayIp": n.subnet + ".1",
		"defaultRoute": true, "cidr": n.subnet + ".0/24",
		"ipPool": map[string]any{"start": n.subnet + ".10", "end": n.subnet + ".200"},
	}
	if n.vlan != 0 {
		body["type"], body["segmentId"] = "VLAN", fmt.Sprint(n.vlan)
		w.vlans[n.id] = n.vlan
	}
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/network", body)
}

// newSNATWorld is a world in which r1 works, with VMs and with services behind the
// upstream router.
func newSNATWorld(t *testing.T, vms ...vm) *world {
	t.Helper()
	w := newWorld(t, lab.FlatConfig{Workers: 2, ControlledPhysical: true}, harness.Options{})
	w.connect(vms...)
	return w
}

// connect starts VMs and services and writes the router.
func (w *world) connect(vms ...vm) {
	w.t.Helper()
	for _, v := range vms {
		w.startVM(v)
	}
	w.serve()
	w.createRouter()
	w.waitSNAT(snatIP)
}

func (w *world) serve() {
	w.t.Helper()
	var err error
	port := netip.AddrPortFrom(internet, 443)
	if w.services.tcp, err = probe.ServeTCP(w.ext.NS, port); err != nil {
		w.t.Fatal(err)
	}
	if w.services.udp, err = probe.ServeUDP(w.ext.NS, port); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = w.services.tcp.Close()
		_ = w.services.udp.Close()
	})
}

// startVM plugs a VM in and writes its port.
func (w *world) startVM(v vm) {
	w.t.Helper()
	if _, err := w.AddVM(w.ctx, v.worker, lab.HostConfig{Name: v.name, MAC: v.mac, Address: v.ip + "/24", Gateway: v.gateway, VLAN: w.vlans[v.network]}); err != nil {
		w.t.Fatal(err)
	}
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/port", map[string]any{
		"vmName": v.name, "networkId": v.network, "macAddress": v.mac, "ipAddress": v.ip,
		"deviceId": lab.BridgeDPID(v.worker, lab.BrInt).String(),
	})
}

func (w *world) createRouter() {
	w.t.Helper()
	w.Must(w.ctx, http.MethodPost, server.NetworkingPath+"/router", w.router)
}

// updateRouter writes r1 with some fields changed.
func (w *world) updateRouter(change map[string]any) {
	w.t.Helper()
	for k, v := range change {
		w.router[k] = v
	}
	w.Must(w.ctx, http.MethodPut, server.ObjectPath("router", "r1"), w.router)
}

// waitSNAT waits until gw1 has the rules that translate to address.
func (w *world) waitSNAT(address netip.Addr) {
	w.t.Helper()
	w.waitSNATOn(lab.Gateway, address)
}

// waitSNATOn waits until a gateway has the rules that translate to address.
func (w *world) waitSNATOn(gateway string, address netip.Addr) {
	w.t.Helper()
	w.waitRulesOn(gateway, "SNAT rules for "+address.String(), func(rules []ovs.Flow) error {
		for _, part := range []string{"nat(src=" + address.String() + ":", "nw_dst=" + address.String(), "arp_tpa=" + address.String()} {
			if !slices.ContainsFunc(rules, func(f ovs.Flow) bool { return f.Table == 31 && strings.Contains(f.String(), part) }) {
				return fmt.Errorf("no rule with %s", part)
			}
		}
		return nil
	})
}

// waitRules waits until the rules of gw1's br-int pass a check.
func (w *world) waitRules(what string, check func([]ovs.Flow) error) {
	w.t.Helper()
	w.waitRulesOn(lab.Gateway, what, check)
}

// waitRulesOn waits until the rules of a gateway's br-int pass a check.
func (w *world) waitRulesOn(gateway, what string, check func([]ovs.Flow) error) {
	w.t.Helper()
	harness.Eventually(w.t, soon, what, func() error {
		rules, err := w.Node(gateway).Flows(w.ctx, lab.BrInt)
		if err != nil {
			return err
		}
		return check(rules)
	})
}

// flows reads the rules of a bridge.
func (w *world) flows(node, bridge string) []ovs.Flow {
	w.t.Helper()
	rules, err := w.Node(node).Flows(w.ctx, bridge)
	if err != nil {
		w.t.Fatal(err)
	}
	return rules
}

// capture collects what comes to a host, until the test ends.
func (w *world) capture(h *lab.Host) *probe.Capture {
	w.t.Helper()
	c, err := probe.StartCapture(h.NS, "eth0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if _, err := c.Stop(); err != nil {
			w.t.Error(err)
		}
	})
	return c
}

// within is a context of that length.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, d)
	w.t.Cleanup(cancel)
	return ctx
}

// watch lets the time pass in which something must not happen.
func watch(d time.Duration) { time.Sleep(d) }

// isIPv4 accepts IPv4 packets that match accepts.
func isIPv4(match func(*layers.Ethernet, *layers.IPv4) bool) func(gopacket.Packet) bool {
	return func(p gopacket.Packet) bool {
		ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if !ok {
			return false
		}
		ethernet, ok := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		return ok && match(ethernet, ip)
	}
}

// anyIPv4 accepts all IPv4 packets.
var anyIPv4 = isIPv4(func(*layers.Ethernet, *layers.IPv4) bool { return true })

func describe(frames []probe.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func mustMAC(s string) model.MAC {
	m, err := model.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}
