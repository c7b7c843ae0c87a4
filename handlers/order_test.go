package handlers_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kvnet/handlers/all"
	"kvnet/handlers/internal/handlertest"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// world is a random life of the state, and the rules that follow it.
type world struct {
	t        *rapid.T
	db       *state.DB
	follower *handlertest.Follower
	revision int64
}

func newWorld(t *rapid.T) *world {
	db := state.New()
	return &world{t: t, db: db, follower: handlertest.Follow(db, all.Handlers()...)}
}

// Small pools, so that references and clashes are frequent.
var (
	hostnames = []string{"gw1", "gw2", "w1", "w2"}
	networks  = []string{"ext", "net-1", "net-2", "a/b"}
	routers   = []string{"r1", "r2", "r/port/02:00:00:00:00:01"}
	balancers = []string{"lb1", "lb2", "lb3/member/10.0.0.1"}
	bridges   = map[string][2]model.DeviceID{
		"gw1": {"of:00000000000000a1", "of:00000000000000b1"}, "gw2": {"of:00000000000000a2", "of:00000000000000b2"},
		"w1": {"of:00000000000000c1", "of:00000000000000d1"}, "w2": {"of:00000000000000c2", "of:00000000000000d2"},
	}
	devices   = []model.DeviceID{"", "ovsdb:x", "of:00000000000000a1", "of:00000000000000b1", "of:00000000000000c1", "of:00000000000000c2"}
	peer      = netip.MustParseAddr("172.16.0.1")
	addresses = []netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.1.1"), peer, netip.MustParseAddr("fd00::1")}
	vips      = []netip.Addr{netip.MustParseAddr("10.0.0.200"), netip.MustParseAddr("10.0.1.200")}
	cidrs     = []string{"10.0.0.0/24", "10.0.1.0/24", "fd00::/64", "0.0.0.0/0"}
)

func pick[T any](t *rapid.T, label string, from []T) T { return rapid.SampledFrom(from).Draw(t, label) }

// usually draws good most of the time, so that much of a random state works, and
// something from odd else.
func usually[T any](t *rapid.T, label string, good T, odd ...T) T {
	if rapid.IntRange(0, 7).Draw(t, label+" is odd") != 7 {
		return good
	}
	return pick(t, label, odd)
}

func some(t *rapid.T, label string, from []string) []string {
	out := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID[string]).Draw(t, label)
	slices.Sort(out)
	return out
}

func mac(t *rapid.T, label string) model.MAC {
	return model.MAC{2, 0, 0, 0, 0, rapid.Uint8Range(1, 4).Draw(t, label)}
}

func drawNode(t *rapid.T, hostname string) *model.Node {
	kind := model.NodeWorker
	if strings.HasPrefix(hostname, "gw") {
		kind = model.NodeGateway
	}
	n := &model.Node{
		Hostname: hostname, Type: usually(t, "type", kind, model.NodeTypes...),
		DataIP:            usually(t, "data", netip.MustParseAddr("10.1.0.1"), addresses...),
		IntegrationBridge: usually(t, "br-int", bridges[hostname][0], devices...),
		TunnelBridge:      usually(t, "br-tun", bridges[hostname][1], devices...),
	}
	if bridge := usually(t, "gateway bridge", "ext", "", "a-long-name"); bridge != "" {
		n.GatewayBridgeName = &bridge
	}
	for _, id := range some(t, "physical", networks) {
		n.PhysIntfs = append(n.PhysIntfs, model.PhysicalIntf{Network: id, PhysBridge: pick(t, "bridge", devices)})
	}
	return n
}

func drawNetwork(t *rapid.T, id string) *model.Network {
	return &model.Network{
		ID: id, Type: pick(t, "type", model.NetworkTypes), Name: pick(t, "name", networks),
		SegmentID: usually(t, "segment", "100", "", "5000", "x"), CIDR: pick(t, "cidr", cidrs), GatewayIP: pick(t, "gateway", addresses),
	}
}

func drawRouter(t *rapid.T, name string) *model.Router {
	r := &model.Router{
		Name: name, EnableSNAT: usually(t, "snat", true, false), MAC: usually(t, "mac", mac(t, "router mac"), model.MAC{}),
		Internal: some(t, "internal", networks),
		External: &model.External{IPText: usually(t, "ip", "172.16.0.100", "", "172.16.0.101", "x"), NetworkID: usually(t, "ext net", "ext", "", "net-1")},
		Peer:     &model.PeerRouter{IP: usually(t, "peer ip", peer, addresses...), MAC: usually(t, "peer mac", model.MAC{}, mac(t, "peer mac")), Write: usually[uint64](t, "peer write", 0, 1)},
	}
	r.External = usually(t, "external", r.External, nil)
	r.Peer = usually(t, "peer", r.Peer, nil)
	if rapid.Bool().Draw(t, "described") {
		r.Description = new(string)
	}
	return r
}

func drawStatus(t *rapid.T, router string) *model.RouterStatus {
	return &model.RouterStatus{
		Name: router, Gateway: usually(t, "gateway", pick(t, "gateway", hostnames[:2]), "w1", "", "gone"), PeerIP: usually(t, "peer ip", peer, addresses...),
		PeerMAC: usually(t, "peer mac", mac(t, "peer mac"), model.MAC{}), Zone: usually[uint16](t, "zone", 1, 0, 2), PeerWrite: usually[uint64](t, "peer write", 0, 1),
	}
}

func drawPort(t *rapid.T, mac model.MAC) *model.Port {
	return &model.Port{
		MAC: mac, NetworkID: pick(t, "network", networks),
		IP:       usually(t, "ip", pick(t, "ip", addresses[1:3]), addresses...),
		DeviceID: usually(t, "device", bridges[pick(t, "worker", hostnames[2:])][0], devices...),
	}
}

func drawObject(t *rapid.T) model.Object {
	switch rapid.IntRange(0, 13).Draw(t, "kind") {
	case 0:
		return drawNode(t, pick(t, "hostname", hostnames))
	case 1:
		return drawNetwork(t, pick(t, "network", networks))
	case 2, 3:
		return drawRouter(t, pick(t, "router", routers))
	case 4:
		return drawStatus(t, pick(t, "router", routers))
	case 5, 6:
		return drawPort(t, mac(t, "port"))
	case 7, 8, 9:
		return drawBalancer(t, pick(t, "balancer", balancers))
	case 10:
		return drawBalancerStatus(t, pick(t, "balancer", balancers))
	case 11:
		return &model.NodeStatus{Hostname: pick(t, "hostname", hostnames), ExternalMAC: pick(t, "outside", []model.MAC{{}, {0xfe, 0, 0, 0, 0, 2}, {0xfe, 0, 0, 0, 0, 3}})}
	}
	return &model.FloatingIP{
		ID: pick(t, "fip", []string{"f1", "f2"}), RouterName: pick(t, "router", routers),
		FloatingIP: usually(t, "ip", netip.MustParseAddr("172.16.0.150"), addresses...), FixedIP: usually(t, "fixed", pick(t, "vip", vips), addresses...),
	}
}

func drawBalancer(t *rapid.T, name string) *model.LoadBalancer {
	lb := &model.LoadBalancer{Name: name, NetworkID: pick(t, "network", networks), VIP: usually(t, "vip", pick(t, "vip", vips), addresses...)}
	for _, a := range addresses[1:] {
		if rapid.Bool().Draw(t, "member") {
			lb.Members = append(lb.Members, a)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := model.LoadBalancerRule{Protocol: usually(t, "protocol", "TCP", "udp", "ICMP", "", "SCTP")}
		if min := rapid.Int32Range(-1, 8).Draw(t, "from"); min > 0 {
			max := rapid.Int32Range(0, 9).Draw(t, "to")
			r.PortRangeMin, r.PortRangeMax = &min, &max
		}
		lb.Rules = append(lb.Rules, r)
	}
	return lb
}

func drawBalancerStatus(t *rapid.T, name string) *model.LoadBalancerStatus {
	return &model.LoadBalancerStatus{Name: name, GroupID: usually[uint32](t, "group", flow.GroupIDMin+1, 0, flow.GroupIDMin+2)}
}

// populate writes one object for each of the most important keys.
func (w *world) populate() {
	for _, h := range hostnames {
		w.write(drawNode(w.t, h))
	}
	for _, id := range networks {
		w.write(drawNetwork(w.t, id))
	}
	for _, name := range routers {
		w.write(drawRouter(w.t, name))
		w.write(drawStatus(w.t, name))
	}
	for _, name := range balancers {
		w.write(drawBalancer(w.t, name))
		w.write(drawBalancerStatus(w.t, name))
	}
	for i := range 4 {
		w.write(drawPort(w.t, model.MAC{2, 0, 0, 0, 0, byte(i + 1)}))
	}
}

// observe connects or disconnects a switch, or changes one of its ports.
func (w *world) observe() {
	d, _ := pick(w.t, "switch", devices[2:]).DPID()
	port := func() model.SwitchPort {
		return model.SwitchPort{DPID: d, Name: pick(w.t, "port", []string{"int-to-ext", "int-to-tun", "int-to-flt", "tap1"}), Number: uint32(rapid.IntRange(1, 3).Draw(w.t, "number"))}
	}
	sw := w.db.Snapshot().Switch(d)
	switch fate := rapid.IntRange(0, 3).Draw(w.t, "observed"); {
	case sw == nil || !sw.Connected:
		w.db.SwitchConnected(model.Switch{DPID: d}, []model.SwitchPort{port()})
	case fate == 0:
		w.db.SwitchDisconnected(d, "test")
	case fate == 1:
		p := port()
		w.db.SwitchPortRemoved(d, p.Name, p.Number)
	default:
		w.db.SwitchPortChanged(port())
	}
}

// step writes, deletes, or deletes and writes one object, or observes a switch.
func (w *world) step() {
	if rapid.IntRange(0, 7).Draw(w.t, "observes") == 7 {
		w.observe()
		return
	}
	o := drawObject(w.t)
	fate := rapid.IntRange(0, 7).Draw(w.t, "fate")
	if fate <= 1 {
		w.apply(state.Event{Kind: o.Kind(), Key: o.Key()})
	}
	if fate != 0 {
		w.write(o) // after a deletion it is another life of the object
	}
}

// write stores o under its next revision.
func (w *world) write(o model.Object) {
	*o.Stored() = model.Meta{Created: w.revision + 1, Modified: w.revision + 1}
	if old := w.db.Snapshot().Get(o.Kind(), o.Key()); old != nil {
		o.Stored().Created = old.Stored().Created
	}
	if st, ok := o.(*model.RouterStatus); ok {
		if r := w.db.Snapshot().Router(st.Name); r != nil {
			st.Life = usually(w.t, "life", r.Created, 0)
		}
	}
	if st, ok := o.(*model.NodeStatus); ok {
		if n := w.db.Snapshot().Node(st.Hostname); n != nil {
			st.Life = usually(w.t, "life", n.Created, 0)
		}
	}
	if st, ok := o.(*model.LoadBalancerStatus); ok {
		if lb := w.db.Snapshot().LoadBalancer(st.Name); lb != nil {
			st.Life = usually(w.t, "life", lb.Created, 0)
		}
	}
	w.apply(state.Event{Kind: o.Kind(), Key: o.Key(), Object: o})
}

func (w *world) apply(e state.Event) {
	w.revision++
	if err := w.db.Apply(w.revision, []state.Event{e}); err != nil {
		w.t.Fatal(err)
	}
}

func TestRulesFollowAnyOrderOfChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.follower.Close()
		w.populate()
		w.follower.Update()
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			for range rapid.IntRange(1, 3).Draw(t, "changes at once") {
				w.step()
			}
			w.follower.Update()
			if want := handlertest.FromScratch(w.db.Snapshot(), all.Handlers()...); !maps.Equal(w.follower.Sets, want) {
				t.Fatal(difference(w.follower.Sets, want))
			}
		}
	})
}

func difference(got, want map[flow.Owner]string) string {
	var b strings.Builder
	for _, o := range slices.Sorted(maps.Keys(want)) {
		if got[o] != want[o] {
			fmt.Fprintf(&b, "%s has\n%s\nbut computed from the final state\n%s\n", o, got[o], want[o])
		}
	}
	for _, o := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[o]; !ok {
			fmt.Fprintf(&b, "%s exists no longer but has\n%s\n", o, got[o])
		}
	}
	return b.String()
}

func TestEveryRuleOfARandomStateIsValidAndSaidOnceByItsOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.follower.Close()
		w.populate()
		for range 20 {
			w.step()
		}
		snap := w.db.Snapshot()
		for _, h := range all.Handlers() {
			for _, o := range h.Owners(snap) {
				set, _ := h.Rules(snap, o)
				seen := map[string]bool{}
				for _, r := range set.Rules {
					if err := r.Validate(); err != nil || r.Switch == 0 {
						t.Fatalf("%s: switch %s: %v", o, r.Switch, err)
					}
					key := fmt.Sprint(r.Switch, r.Key())
					if seen[key] {
						t.Fatalf("%s says %s twice", o, r)
					}
					seen[key] = true
				}
				for _, g := range set.Groups {
					if err := g.Validate(); err != nil || g.Switch == 0 {
						t.Fatalf("%s: switch %s: %v", o, g.Switch, err)
					}
				}
			}
		}
	})
}
