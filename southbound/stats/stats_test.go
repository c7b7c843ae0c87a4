package stats_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"kvnet/handlers/snat"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/ovstest"
	"kvnet/southbound/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	gw1Switch model.DPID = 0xa1
	gw2Switch model.DPID = 0xa2
)

var (
	routerMAC = model.MAC{0xfa, 0, 0, 0, 0, 0x0a}
	peerMAC   = model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 1}
	vmMAC     = model.MAC{0xfa, 0x16, 0x3e, 0, 0, 0x11}
)

func ptr[T any](v T) *T { return &v }

// world is a state with the router r1 on gw1, whose networks have VLANs, so that
// it has several rules on the way out.
type world struct {
	t        *testing.T
	db       *state.DB
	revision int64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: state.New(), revision: 1}
	gateway := func(name string, d model.DPID) *model.Node {
		return &model.Node{Hostname: name, Type: model.NodeGateway, IntegrationBridge: model.DeviceID(d.String()), GatewayBridgeName: ptr("ext")}
	}
	network := func(id string, typ model.NetworkType, segment, cidr string) *model.Network {
		return &model.Network{ID: id, Type: typ, SegmentID: segment, CIDR: cidr}
	}
	if err := w.db.Replace(1, nil); err != nil {
		t.Fatal(err)
	}
	w.put(gateway("gw1", gw1Switch), gateway("gw2", gw2Switch),
		&model.NodeStatus{Hostname: "gw1", Life: 1, State: model.NodeComplete}, &model.NodeStatus{Hostname: "gw2", Life: 1, State: model.NodeComplete},
		network("ext", model.NetworkFLAT, "", "172.16.0.0/24"), network("v1", model.NetworkVLAN, "11", "10.1.0.0/24"), network("v2", model.NetworkVLAN, "12", "10.2.0.0/24"),
		&model.Router{Name: "r1", EnableSNAT: true, MAC: routerMAC, Internal: []string{"v1", "v2"},
			External: &model.External{IPText: "172.16.0.100", NetworkID: "ext"}, Peer: &model.PeerRouter{IP: netip.MustParseAddr("172.16.0.1"), MAC: peerMAC}},
		&model.RouterStatus{Name: "r1", Life: 1, Gateway: "gw1", Zone: 1, PeerIP: netip.MustParseAddr("172.16.0.1"), PeerMAC: peerMAC},
	)
	return w
}

// put writes objects of one life.
func (w *world) put(objects ...model.Object) {
	w.t.Helper()
	w.revision++
	var events []state.Event
	for _, o := range objects {
		*o.Stored() = model.Meta{Created: 1, Modified: w.revision}
		events = append(events, state.Event{Kind: o.Kind(), Key: o.Key(), Object: o})
	}
	if err := w.db.Apply(w.revision, events); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(kind model.Kind, key string) {
	w.t.Helper()
	w.revision++
	if err := w.db.Apply(w.revision, []state.Event{{Kind: kind, Key: key}}); err != nil {
		w.t.Fatal(err)
	}
}

// poll runs a Poller until the test or stop ends it.
func (w *world) poll(session func(model.DPID) (stats.Session, bool)) (g *stats.Gauges, stop func()) {
	g = stats.NewGauges(w.db)
	p := stats.NewPoller(stats.Config{DB: w.db, Gauges: g, Session: session, Interval: 20 * time.Millisecond, Timeout: 10 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the poller ended with %v", err)
		}
		ended <- nil
	}
	w.t.Cleanup(stop)
	return g, stop
}

// values are the gauges as Prometheus writes them, without those of reads.
func values(t *testing.T, g prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(g); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if m.GetGauge() != nil {
				out[f.GetName()+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func become(t *testing.T, g *stats.Gauges, want map[string]float64) {
	t.Helper()
	var got map[string]float64
	defer func() {
		if t.Failed() {
			t.Logf("the gauges are %v", got)
		}
	}()
	eventually(t, "the gauges are as wanted", func() bool {
		got = values(t, g)
		return maps.Equal(got, want)
	})
}

// noEvents is for a server of which only the sessions matter.
type noEvents struct{}

func (noEvents) MasterUp(*openflow.Session)                          {}
func (noEvents) SessionDown(*openflow.Session, error)                {}
func (noEvents) PacketIn(*openflow.Session, openflow.PacketIn)       {}
func (noEvents) FlowRemoved(*openflow.Session, openflow.FlowRemoved) {}
func (noEvents) Stale(*openflow.Session, uint64)                     {}

const r1Labels = " merName=gw1 routerName=r1 routerSnatIp=172.16.0.100"

// The rules are those that kvnet makes, on a real switch, and packets run through
// them.
func TestCountersOfARealSwitchArriveInTheGauges(t *testing.T) {
	w := newWorld(t)
	ovs := ovstest.Start(t)
	ovs.AddBridge("br-int", gw1Switch, "vm", "int-to-ext")
	set, waiting := snat.New().Rules(w.db.Snapshot(), "snat/r1")
	if len(waiting) > 0 {
		t.Fatalf("the router waits for %v", waiting)
	}
	ln := ovs.Listen()
	server := openflow.NewServer(openflow.Config{Observer: w.db, Events: noEvents{}})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	server.SetRole(openflow.Role{Master: true, Generation: 1})
	ovs.SetController("br-int", ln.Addr())
	// The first controller of a bridge makes it forget its rules.
	eventually(t, "the switch is connected", func() bool { return server.Session(gw1Switch) != nil })
	ovs.Ofctl("add-flow", "br-int", "table=0,actions=resubmit(,31)")
	// Others' rules and those of other routers count for nobody here.
	ovs.Ofctl("add-flow", "br-int", "table=31,priority=40500,ip,dl_dst="+routerMAC.String()+",nw_tos=4,actions=drop")
	ovs.Ofctl("add-flow", "br-int", "cookie=0x6b00000000000099,table=31,priority=40500,ip,nw_dst=172.16.0.99,actions=drop")
	for _, r := range set.Rules {
		r.Announce = nil
		ovs.Ofctl("add-flow", "br-int", "cookie=0x6b00000000000001,"+r.String())
	}
	g, stop := w.poll(func(d model.DPID) (stats.Session, bool) {
		s := server.Session(d)
		return s, s != nil
	})
	become(t, g, map[string]float64{
		"snat_tx_byte" + r1Labels: 0, "snat_tx_pkts" + r1Labels: 0, "snat_rx_byte" + r1Labels: 0, "snat_rx_pkts" + r1Labels: 0,
	})
	for vlan := range 2 { // one packet in each VLAN: two rules
		ovs.Inject("br-int", 1, udp(vmMAC, routerMAC, uint16(11+vlan), "10.1.0.11", "198.51.100.7"))
	}
	for range 3 {
		ovs.Inject("br-int", 2, udp(peerMAC, model.FirstExternalMAC, 0, "198.51.100.7", "172.16.0.100"))
	}
	ovs.Inject("br-int", 2, udp(peerMAC, model.FirstExternalMAC, 0, "198.51.100.7", "172.16.0.99"))
	const untagged = 14 + 20 + 8 + 18
	become(t, g, map[string]float64{
		"snat_tx_byte" + r1Labels: 2 * (untagged + 4), "snat_tx_pkts" + r1Labels: 2,
		"snat_rx_byte" + r1Labels: 3 * untagged, "snat_rx_pkts" + r1Labels: 3,
	})
	stop()
	if left := values(t, g); len(left) > 0 {
		t.Errorf("a server that does not lead has %v", left)
	}
}

// udp is a frame of 60 bytes, or 64 with a tag.
func udp(src, dst model.MAC, vlan uint16, from, to string) []byte {
	b := slices.Concat(dst[:], src[:])
	if vlan != 0 {
		b = append(b, 0x81, 0, byte(vlan>>8), byte(vlan))
	}
	a, z := netip.MustParseAddr(from).As4(), netip.MustParseAddr(to).As4()
	ip := slices.Concat([]byte{0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0}, a[:], z[:])
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(ip[i])<<8 | uint32(ip[i+1])
	}
	sum = ^(sum&0xffff + sum>>16)
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	return slices.Concat(b, []byte{8, 0}, ip, []byte{0x10, 0, 0, 53, 0, 26, 0, 0}, make([]byte, 18))
}

// fake is a switch with rules.
type fake struct {
	entries []openflow.FlowEntry
	err     error
}

func (f *fake) Flows(_ context.Context, q openflow.FlowQuery) ([]openflow.FlowEntry, error) {
	if q.Table != flow.TableGwEntry || q.Cookie != flow.CookieMark || q.Mask != flow.CookieMask {
		return nil, errors.New("more is asked for than the first table's own rules")
	}
	return f.entries, f.err
}

func entry(priority uint16, m flow.Match, packets uint64) openflow.FlowEntry {
	m.EthType = flow.EthTypeIPv4
	return openflow.FlowEntry{Table: flow.TableGwEntry, Priority: priority, Packets: packets, Bytes: 100 * packets, Rule: flow.Rule{Match: m}}
}

func only(d model.DPID, f *fake) func(model.DPID) (stats.Session, bool) {
	return func(x model.DPID) (stats.Session, bool) { return f, x == d }
}

func TestGaugesGoWithTheirRouter(t *testing.T) {
	w := newWorld(t)
	g, _ := w.poll(only(gw1Switch, &fake{entries: []openflow.FlowEntry{entry(flow.PriorityStatefulSNAT, flow.Match{EthDst: routerMAC}, 5)}}))
	want := map[string]float64{"snat_tx_byte" + r1Labels: 500, "snat_tx_pkts" + r1Labels: 5}
	become(t, g, want)
	off := *w.db.Snapshot().Router("r1")
	on := off
	off.EnableSNAT = false
	w.put(&off)
	if got := values(t, g); len(got) > 0 {
		t.Errorf("without SNAT: %v", got)
	}
	w.put(&on)
	become(t, g, want)
	moved := *w.db.Snapshot().RouterStatus("r1")
	moved.Gateway = "gw2" // which is not connected
	w.put(&moved)
	if got := values(t, g); len(got) > 0 {
		t.Errorf("with another gateway: %v", got)
	}
	moved.Gateway = "gw1"
	w.put(ptr(moved))
	become(t, g, want)
	w.remove(model.KindRouter, "r1")
	if got := values(t, g); len(got) > 0 {
		t.Errorf("without the router: %v", got)
	}
}

func TestNoGaugesOfASwitchThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	g, _ := w.poll(only(gw1Switch, &fake{err: errors.New("the switch is slow"), entries: []openflow.FlowEntry{entry(flow.PriorityStatefulSNAT, flow.Match{EthDst: routerMAC}, 5)}}))
	eventually(t, "failed reads are counted", func() bool { return testutil.CollectAndCount(g, "kvnet_counter_reads_total") == 1 })
	if got := values(t, g); len(got) > 0 {
		t.Errorf("gauges %v", got)
	}
}

func TestFloatingIPsOfVMsHaveGauges(t *testing.T) {
	w := newWorld(t)
	address := netip.MustParseAddr
	w.put(
		&model.Port{VMName: "vm1", MAC: model.MAC{2}, NetworkID: "v2", IP: address("10.2.0.11")},
		&model.Port{VMName: "vm1", MAC: vmMAC, NetworkID: "v1", IP: address("10.1.0.11")},
		&model.FloatingIP{ID: "f1", RouterName: "r1", NetworkName: "ext", FloatingIP: address("172.16.0.50"), VMName: ptr("vm1"), FixedIP: address("10.1.0.11")},
		&model.FloatingIP{ID: "f2", RouterName: "r1", NetworkName: "ext", FloatingIP: address("172.16.0.51")}, // no VM's
	)
	g, _ := w.poll(only(gw2Switch, &fake{entries: []openflow.FlowEntry{
		entry(flow.PriorityFloatingUpstream, flow.Match{EthSrc: vmMAC}, 1),
		entry(flow.PriorityFloatingDownstream, flow.Match{IPDst: flow.Host(address("172.16.0.50"))}, 2),
		entry(flow.PriorityFloatingDownstream, flow.Match{IPDst: flow.Host(address("172.16.0.51"))}, 3),
		entry(flow.PriorityStatefulSNAT, flow.Match{EthSrc: vmMAC}, 4),
	}}))
	const labels = " fipAddress=172.16.0.50 fipId=f1 merName=gw2 networkName=ext vmName=vm1"
	become(t, g, map[string]float64{"fip_tx_byte" + labels: 100, "fip_tx_pkts" + labels: 1, "fip_rx_byte" + labels: 200, "fip_rx_pkts" + labels: 2})
}
