package oftest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// Switch is a simulated switch.
type Switch struct {
	dpid model.DPID

	mu         sync.Mutex
	ports      map[uint32]model.SwitchPort
	flows      map[flowKey]*flowEntry
	groups     map[uint32]groupEntry
	generation uint64
	hasGen     bool
	conns      map[*conn]struct{}
	counts     Counts
	packets    []PacketOut
	refuse     func(Mod) *Refusal
	frozen     chan struct{} // not nil while frozen; closed by Thaw
}

// Counts says how many messages a switch has taken in and carried out.
type Counts struct{ FlowMods, GroupMods, PacketOuts, Bundles, FlowQueries, GroupQueries int }

// PacketOut is a frame that the switch sent out.
type PacketOut struct {
	Port  uint32
	Frame []byte
}

// Mod is a message that changes a switch or sends a frame.
type Mod struct {
	Type     uint8 // wire.TypeFlowMod, wire.TypeGroupMod or wire.TypePacketOut
	Command  uint16
	InBundle bool
	Cookie   uint64
	Mask     uint64
	Rule     flow.Rule  // of a flow-mod
	Group    flow.Group // of a group-mod
	Packet   PacketOut  // of a packet-out

	xid                 uint32
	raw                 []byte
	flags               uint16
	match, instructions []byte // of a flow-mod
	buckets             []byte // of a group-mod
}

// Commands of flow-mods and group-mods.
const (
	FlowAdd          uint16 = 0
	FlowModify       uint16 = 1
	FlowDelete       uint16 = 3
	FlowDeleteStrict uint16 = 4

	GroupAdd    uint16 = 0
	GroupModify uint16 = 1
	GroupDelete uint16 = 2
)

// Refusal is the error with which a switch refuses a message.
type Refusal struct {
	Type, Code uint16
	// AtAdd refuses a message of a bundle when it is added. Otherwise it fails
	// when the bundle is committed.
	AtAdd bool
}

// New makes a switch whose ports have the numbers 1, 2, … and the local port.
func New(d model.DPID, ports ...string) *Switch {
	s := &Switch{
		dpid: d, ports: map[uint32]model.SwitchPort{}, flows: map[flowKey]*flowEntry{}, groups: map[uint32]groupEntry{},
		conns: map[*conn]struct{}{},
	}
	s.ports[flow.Local.Number] = model.SwitchPort{DPID: d, Number: flow.Local.Number, Name: fmt.Sprintf("br%x", uint64(d))}
	for i, p := range ports {
		n := uint32(i + 1)
		s.ports[n] = model.SwitchPort{DPID: d, Number: n, Name: p, MAC: model.MAC{2, 0, 0, 0, 0, byte(n)}, Enabled: true}
	}
	return s
}

// DPID is the datapath id of s.
func (s *Switch) DPID() model.DPID { return s.dpid }

// Connect connects s to a controller until it is disconnected or the test ends.
// A switch may have several controllers.
func (s *Switch) Connect(t testing.TB, addr net.Addr) {
	t.Helper()
	c, err := net.DialTimeout(addr.Network(), addr.String(), 10*time.Second)
	if err != nil {
		t.Fatalf("connect switch %s: %v", s.dpid, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(c) // a lost connection is what tests are about
	}()
	t.Cleanup(func() {
		c.Close()
		s.Thaw()
		<-ended
	})
}

// Keep connects s again and again until the test ends.
func (s *Switch) Keep(t testing.TB, addr net.Addr) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if c, err := net.DialTimeout(addr.Network(), addr.String(), 10*time.Second); err == nil {
				_ = s.Serve(c)
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		for {
			s.Thaw()
			s.Disconnect()
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
}

// Serve plays the switch on one connection until that ends.
func (s *Switch) Serve(nc net.Conn) error {
	c := &conn{s: s, nc: nc, bundles: map[uint32]*bundle{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	err := c.run()
	nc.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	return err
}

// Disconnect ends all connections.
func (s *Switch) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.nc.Close()
	}
}

// Freeze makes the switch read and answer nothing, until Thaw.
func (s *Switch) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen == nil {
		s.frozen = make(chan struct{})
	}
}

// Thaw ends Freeze.
func (s *Switch) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen != nil {
		close(s.frozen)
		s.frozen = nil
	}
}

// Refuse makes the switch ask f about each message that changes it. f may be nil.
func (s *Switch) Refuse(f func(Mod) *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// SetGeneration makes another, newer controller the master: the present masters
// become slaves and are told.
func (s *Switch) SetGeneration(g uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation, s.hasGen = g, true
	s.depose(nil)
}

// Counts says what the switch has done so far.
func (s *Switch) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// PacketOuts are the frames that the switch has sent out, in order.
func (s *Switch) PacketOuts() []PacketOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.packets)
}

// Rules are the rules of the switch, sorted by table, falling priority and match.
func (s *Switch) Rules() []flow.Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []flow.Rule
	for _, e := range s.sorted() {
		out = append(out, e.rule)
	}
	return out
}

// Cookies are the cookies of Rules, in the same order.
func (s *Switch) Cookies() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []uint64
	for _, e := range s.sorted() {
		out = append(out, e.cookie)
	}
	return out
}

// Groups are the groups of the switch, sorted by id.
func (s *Switch) Groups() []flow.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]flow.Group, 0, len(s.groups))
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		out = append(out, s.groups[id].group)
	}
	return out
}

func (s *Switch) sorted() []*flowEntry {
	out := make([]*flowEntry, 0, len(s.flows))
	for _, e := range s.flows {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *flowEntry) int {
		return cmp.Or(cmp.Compare(a.rule.Table, b.rule.Table), cmp.Compare(b.rule.Priority, a.rule.Priority), bytes.Compare(a.match, b.match))
	})
	return out
}

// AddPort adds a port or gives it another state, and tells the controllers.
func (s *Switch) AddPort(number uint32, name string, enabled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := wire.PortAdded
	if _, ok := s.ports[number]; ok {
		reason = wire.PortModified
	}
	p := model.SwitchPort{DPID: s.dpid, Number: number, Name: name, Enabled: enabled}
	s.ports[number] = p
	s.broadcast(true, portStatus(reason, p))
}

// RemovePort removes a port and tells the controllers.
func (s *Switch) RemovePort(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.ports[number]; ok {
		delete(s.ports, number)
		s.broadcast(true, portStatus(wire.PortDeleted, p))
	}
}

// PacketIn hands a frame to the controllers that aren't slaves.
func (s *Switch) PacketIn(inPort uint32, table uint8, cookie uint64, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broadcast(false, packetIn(inPort, table, cookie, frame))
}

// RemoveFlows removes rules as by hand, and tells the controllers.
func (s *Switch) RemoveFlows(which func(flow.Rule) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for k, e := range s.flows {
		if which(e.rule) {
			delete(s.flows, k)
			s.tellRemoved(e, reasonDelete)
			n++
		}
	}
	return n
}

// ChangeFlows changes actions of rules as by hand (`mod-flows`): cookie and
// duration stay. change gets the instructions and returns others.
func (s *Switch) ChangeFlows(change func(r flow.Rule, instructions []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.flows {
		b := change(e.rule, e.instructions)
		actions, table, err := wire.DecodeInstructions(b)
		if err != nil {
			return fmt.Errorf("change the actions of %s: %w", e.rule, err)
		}
		e.instructions, e.rule.Actions, e.rule.Goto = b, actions, table
	}
	return nil
}

// Wipe forgets rules, groups and the generation, as a restart does.
func (s *Switch) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.flows)
	clear(s.groups)
	s.generation, s.hasGen = 0, false
}

var errGarbage = errors.New("the controller sent garbage")
