package handlertest

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
)

// Lab is a state with a follower, for tables of steps and the rules after them.
type Lab struct {
	T        *testing.T
	DB       *state.DB
	follower *Follower
	revision int64
}

// New makes a Lab of an empty state.
func New(t *testing.T, hs ...handlers.Handler) *Lab {
	db := state.New()
	l := &Lab{T: t, DB: db, follower: Follow(db, hs...)}
	t.Cleanup(l.follower.Close)
	return l
}

// NewCloud makes a Lab of two gateways, two workers, networks of all kinds with
// ports, and the router r1 with the networks net1 and flat1, all decided.
func NewCloud(t *testing.T, hs ...handlers.Handler) *Lab {
	l := New(t, hs...)
	l.Put(
		Node(model.NodeGateway, "gw1", 1), Node(model.NodeGateway, "gw2", 2),
		Node(model.NodeWorker, "w1", 1), Node(model.NodeWorker, "w2", 2),
		Network(model.NetworkFLAT, "ext-net", "", "172.16.0.0/24"),
		Network(model.NetworkVXLAN, "net1", "1000", "10.10.0.0/24"),
		Network(model.NetworkVXLAN, "net2", "2000", "10.20.0.0/24"),
		Network(model.NetworkFLAT, "flat1", "", "192.168.10.0/24"),
		Port(0x11, "net1", "10.10.0.11", "c1"), Port(0x12, "net1", "10.10.0.12", "c2"),
		Port(0x21, "net2", "10.20.0.21", "c2"), Port(0x31, "flat1", "192.168.10.31", "c1"),
		Router("r1", "flat1", "net1"),
	)
	l.Complete("r1", "gw1", 1)
	return l
}

// Put writes objects at one revision. An object that was there keeps its life.
func (l *Lab) Put(objects ...model.Object) {
	l.T.Helper()
	l.revision++
	var events []state.Event
	for _, o := range objects {
		m := o.Stored()
		*m = model.Meta{Created: l.revision, Modified: l.revision}
		if old := l.DB.Snapshot().Get(o.Kind(), o.Key()); old != nil {
			m.Created = old.Stored().Created
		}
		events = append(events, state.Event{Kind: o.Kind(), Key: o.Key(), Object: o})
	}
	l.apply(events)
}

// Delete deletes an object.
func (l *Lab) Delete(kind model.Kind, key string) {
	l.T.Helper()
	l.revision++
	l.apply([]state.Event{{Kind: kind, Key: key}})
}

func (l *Lab) apply(events []state.Event) {
	l.T.Helper()
	if err := l.DB.Apply(l.revision, events); err != nil {
		l.T.Fatal(err)
	}
	l.follower.Update()
}

// Edit writes a changed copy of a router.
func (l *Lab) Edit(router string, change func(*model.Router)) {
	l.T.Helper()
	r := *l.DB.Snapshot().Router(router)
	change(&r)
	l.Put(&r)
}

// Decide writes a changed copy of a router's status, or a new one.
func (l *Lab) Decide(router string, change func(*model.RouterStatus)) {
	l.T.Helper()
	s := model.RouterStatus{Name: router}
	if old := l.DB.Snapshot().RouterStatus(router); old != nil {
		s = *old
	}
	if r := l.DB.Snapshot().Router(router); r != nil {
		s.Life = r.Created
	}
	change(&s)
	l.Put(&s)
}

// Lines are all rules and what is waited for, of owners whose name begins with
// owner, in order.
func (l *Lab) Lines(owner string) (lines []string) {
	for _, o := range slices.Sorted(maps.Keys(l.follower.Sets)) {
		if strings.HasPrefix(string(o), owner) {
			lines = append(lines, strings.Split(l.follower.Sets[o], "\n")...)
		}
	}
	slices.Sort(lines)
	return lines
}

// Want compares Lines with want, lines in any order, blank ones passed over.
func (l *Lab) Want(step, owner, want string) {
	l.T.Helper()
	var w []string
	for line := range strings.Lines(want) {
		if s := strings.TrimSpace(line); s != "" {
			w = append(w, s)
		}
	}
	slices.Sort(w)
	if got := l.Lines(owner); !slices.Equal(got, w) {
		l.T.Errorf("%s: got\n\t%s\nwant\n\t%s", step, strings.Join(got, "\n\t"), strings.Join(w, "\n\t"))
	}
}

// Has and HasNot look for a line that contains text.
func (l *Lab) Has(step, text string) {
	l.T.Helper()
	if !l.contains(text) {
		l.T.Errorf("%s: no line with %q in\n\t%s", step, text, strings.Join(l.Lines(""), "\n\t"))
	}
}

// HasNot is the opposite of Has.
func (l *Lab) HasNot(step, text string) {
	l.T.Helper()
	if l.contains(text) {
		l.T.Errorf("%s: a line with %q in\n\t%s", step, text, strings.Join(l.Lines(""), "\n\t"))
	}
}

func (l *Lab) contains(text string) bool {
	return slices.ContainsFunc(l.Lines(""), func(s string) bool { return strings.Contains(s, text) })
}

// The objects of the examples of the original's recordings.
var (
	RouterMAC = model.MAC{0xfa, 0, 0, 0, 0, 0x0a}
	PeerMAC   = model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 0x01}
	SNATIP    = netip.MustParseAddr("172.16.0.100")
	PeerIP    = netip.MustParseAddr("172.16.0.1")
)

// Node is a node with bridges a<n> (br-int) and b<n> (br-tun) for a gateway, c<n>
// and d<n> for others, the data address 10.0.0.<n>, and for a gateway the outer
// network "external".
func Node(kind model.NodeType, hostname string, n byte) *model.Node {
	node := &model.Node{
		Hostname: hostname, Type: kind, DataIP: netip.AddrFrom4([4]byte{10, 0, 0, n}),
		IntegrationBridge: model.DeviceID(model.DPID(0xc0 | n).String()), TunnelBridge: model.DeviceID(model.DPID(0xd0 | n).String()),
	}
	if kind == model.NodeGateway {
		outer := "external"
		node.GatewayBridgeName = &outer
		node.IntegrationBridge, node.TunnelBridge = model.DeviceID(model.DPID(0xa0|n).String()), model.DeviceID(model.DPID(0xb0|n).String())
	}
	return node
}

// Network is a network with the gateway address .1 of its IPv4 prefix.
func Network(kind model.NetworkType, id, segment, cidr string) *model.Network {
	p := netip.MustParsePrefix(cidr)
	return &model.Network{ID: id, Name: id, Type: kind, SegmentID: segment, CIDR: cidr, GatewayIP: p.Addr().Next()}
}

// Port is a port with the MAC fa:16:3e:00:00:<n> at a br-int.
func Port(n byte, network, ip, bridge string) *model.Port {
	p := &model.Port{MAC: model.MAC{0xfa, 0x16, 0x3e, 0, 0, n}, NetworkID: network}
	if ip != "" {
		p.IP = netip.MustParseAddr(ip)
	}
	if bridge != "" {
		d, _ := model.ParseDPID("of:" + bridge)
		p.DeviceID = model.DeviceID(d.String())
	}
	return p
}

// Router is a router with SNAT on.
func Router(name string, internal ...string) *model.Router {
	return &model.Router{
		Name: name, EnableSNAT: true, MAC: RouterMAC, Internal: internal,
		External: &model.External{IPText: SNATIP.String(), NetworkID: "ext-net"},
		Peer:     &model.PeerRouter{IP: PeerIP},
	}
}

// Complete decides everything about a router that SNAT needs.
func (l *Lab) Complete(router, gateway string, zone uint16) {
	l.T.Helper()
	l.Decide(router, func(s *model.RouterStatus) {
		s.Gateway, s.PeerIP, s.PeerMAC, s.Zone = gateway, PeerIP, PeerMAC, zone
	})
}
