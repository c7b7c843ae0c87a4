package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wishes is a handler whose owners want what the test says. Owner "w/x" is
// computed anew when the network "x" changes.
type wishes struct {
	mu   sync.Mutex
	sets map[flow.Owner]flow.Set
	// gate, if set, makes Rules of its owner wait.
	gate atomic.Pointer[gate]
}

// gate stops the planner when it computes an owner.
type gate struct {
	owner         flow.Owner
	reached, open chan struct{}
}

func newGate(o flow.Owner) *gate {
	return &gate{o, make(chan struct{}, 1), make(chan struct{})}
}

func (*wishes) Name() string { return "w" }

func (*wishes) Affected(_ state.Snapshot, c model.Change) []flow.Owner {
	if c.Kind != model.KindNetwork {
		return nil
	}
	return []flow.Owner{flow.Owner("w/" + c.Key)}
}

func (w *wishes) Rules(_ state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	if g := w.gate.Load(); g != nil && g.owner == o {
		select {
		case g.reached <- struct{}{}:
		default:
		}
		<-g.open
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sets[o], nil
}

func (w *wishes) Owners(state.Snapshot) (out []flow.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.sets {
		out = append(out, o)
	}
	return out
}

// world is an engine with a real OpenFlow server and simulated switches.
type world struct {
	t      *testing.T
	db     *state.DB
	wishes *wishes
	engine *Engine
	server *openflow.Server
	addr   net.Addr
	stop   context.CancelFunc
	cfg    Config
	gen    uint64
	mu     sync.Mutex
}

func (w *world) current() *Engine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engine
}

func (w *world) MasterUp(s *openflow.Session)               { Events{w.current()}.MasterUp(s) }
func (w *world) SessionDown(s *openflow.Session, err error) { Events{w.current()}.SessionDown(s, err) }
func (w *world) FlowRemoved(s *openflow.Session, f openflow.FlowRemoved) {
	Events{w.current()}.FlowRemoved(s, f)
}
func (w *world) PacketIn(*openflow.Session, openflow.PacketIn) {}
func (w *world) Stale(*openflow.Session, uint64)               {}

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, db: state.New(), wishes: &wishes{sets: map[flow.Owner]flow.Set{}}}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	w.cfg = Config{DB: w.db, Handlers: []handlers.Handler{w.wishes}, Logger: log,
		AuditInterval: time.Hour, FullAuditInterval: time.Hour, AssembleHold: time.Millisecond}
	if change != nil {
		change(&w.cfg)
	}
	w.engine = New(w.cfg)
	if err := w.db.Replace(1, nil); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr()
	w.server = openflow.NewServer(openflow.Config{Observer: w.db, Events: w, Logger: log})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.server.Serve(ctx, ln) })
	t.Cleanup(func() {
		w.end()
		cancel()
		wg.Wait()
	})
	w.lead()
	return w
}

// lead starts the present engine under the next generation.
func (w *world) lead() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	e := w.current()
	wg.Go(func() { _ = e.Run(ctx) })
	w.stop = func() { cancel(); wg.Wait() }
	w.gen++
	w.server.SetRole(openflow.Role{Master: true, Generation: w.gen})
}

func (w *world) end() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// takeOver replaces the engine by a new one, as after a crash.
func (w *world) takeOver() {
	w.end()
	w.mu.Lock()
	w.engine = New(w.cfg)
	w.mu.Unlock()
	w.lead()
}

// want says what an owner wants from now on.
func (w *world) want(name string, rules ...flow.Rule) { w.wantSet(name, flow.Set{Rules: rules}) }

func (w *world) wantSet(name string, set flow.Set) {
	w.t.Helper()
	w.wishes.mu.Lock()
	if len(set.Rules)+len(set.Groups) == 0 {
		delete(w.wishes.sets, flow.Owner("w/"+name))
	} else {
		w.wishes.sets[flow.Owner("w/"+name)] = set
	}
	w.wishes.mu.Unlock()
	w.touch(name)
}

// touch has the owners computed again.
func (w *world) touch(names ...string) {
	w.t.Helper()
	rev := w.db.Snapshot().Revision() + 1
	var ev []state.Event
	for _, n := range names {
		ev = append(ev, state.Event{Kind: model.KindNetwork, Key: n, Object: &model.Network{ID: n, Meta: model.Meta{Created: rev, Modified: rev}}})
	}
	if err := w.db.Apply(rev, ev); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) connect(s *oftest.Switch) *oftest.Switch {
	s.Keep(w.t, w.addr)
	return s
}

// until waits for a condition; the deadline only bounds a failing test.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// holds waits until the switch holds exactly these rules (texts, in any order).
func holds(t *testing.T, s *oftest.Switch, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	end := time.Now().Add(20 * time.Second)
	for {
		got = got[:0]
		for _, r := range s.Rules() {
			got = append(got, r.String())
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("switch %s holds\n  %s\nwant\n  %s", s.DPID(), strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// settled waits until nothing is pending for the owner.
func (w *world) settled() {
	w.t.Helper()
	until(w.t, "everything installed", func() bool {
		w.wishes.mu.Lock()
		want := 0
		for _, s := range w.wishes.sets {
			want += len(s.Rules) + len(s.Groups)
		}
		w.wishes.mu.Unlock()
		views := w.current().Rules(Filter{})
		for _, v := range views {
			if v.State != StateInstalled {
				return false
			}
		}
		return len(views) == want
	})
}

// rule parses a rule for a switch.
func rule(t testing.TB, d model.DPID, text string) flow.Rule {
	t.Helper()
	r, err := flow.ParseRule(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r.Switch = d
	return r
}

func responderRule(t testing.TB, d model.DPID, ip string) flow.Rule {
	t.Helper()
	r := rule(t, d, fmt.Sprintf(`table=31,priority=41000,arp,in_port="p1",arp_op=1,arp_tpa=%s,actions=set_field:2->arp_op,IN_PORT`, ip))
	r.Announce = &flow.Announcement{Address: netip.MustParseAddr(ip), Scope: "r1", Ports: []flow.Port{flow.NamedPort("p1")}, Frame: strings.Repeat("a", 42)}
	return r
}

const drop1 = "table=31,priority=100,ip,nw_dst=10.0.0.1,actions=drop"
const drop2 = "table=31,priority=100,ip,nw_dst=10.0.0.2,actions=drop"
