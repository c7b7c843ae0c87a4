package order

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"kvnet/cluster/leader"
	"kvnet/handlers/all"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server's inner parts, all real but the store, with simulated
// switches.
type world struct {
	t        *testing.T
	rnd      *rand.Rand
	db       *state.DB
	store    *memory
	engine   *reconcile.Engine
	registry *prometheus.Registry
	addr     net.Addr
	switches map[model.DPID]*simulated
	log      []string
}

// simulated is a switch and how it is.
type simulated struct {
	*oftest.Switch
	connected bool
	ports     map[string]uint32
	next      uint32
	stop      context.CancelFunc
	done      chan struct{}
}

type events struct{ reconcile.Events }

func (events) PacketIn(*openflow.Session, openflow.PacketIn) {}
func (events) Stale(*openflow.Session, uint64)               {}

func newWorld(t *testing.T, seed uint64) *world {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("KVNET_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), db: state.New(), registry: prometheus.NewRegistry(), switches: map[model.DPID]*simulated{}}
	w.store = &memory{db: w.db}
	if err := w.db.Replace(1, nil); err != nil {
		t.Fatal(err)
	}
	w.engine = reconcile.New(reconcile.Config{DB: w.db, Handlers: all.Handlers(), Logger: log, Metrics: reconcile.NewMetrics(w.registry),
		AuditInterval: time.Second, FullAuditInterval: 200 * time.Millisecond, WaveTimeout: 100 * time.Millisecond,
		DeleteHold: 20 * time.Millisecond, AssembleHold: time.Millisecond, RefusedBackoff: 20 * time.Millisecond})
	decider := leader.NewDecider(leader.DeciderConfig{DB: w.db, Store: w.store, Logger: log, Grace: 10 * time.Millisecond, CutGrace: 5 * time.Millisecond, LostGrace: 10 * time.Millisecond})
	server := openflow.NewServer(openflow.Config{Observer: w.db, Events: events{reconcile.Events{Engine: w.engine}}, Logger: log})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(ctx, ln) })
	wg.Go(func() { _ = w.engine.Run(ctx) })
	wg.Go(func() { _ = decider.Run(ctx) })
	server.SetRole(openflow.Role{Master: true, Generation: 1})
	t.Cleanup(func() {
		for _, s := range w.switches {
			w.disconnect(s)
		}
		cancel()
		wg.Wait()
	})
	return w
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// sw is the switch of that datapath id, made at its first use.
func (w *world) sw(d model.DPID) *simulated {
	if s := w.switches[d]; s != nil {
		return s
	}
	s := &simulated{Switch: oftest.New(d), ports: map[string]uint32{}, next: 10}
	w.switches[d] = s
	return s
}

func (w *world) connect(s *simulated) {
	if s.connected {
		return
	}
	s.connected = true
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.done = cancel, make(chan struct{})
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			nc, err := net.Dial("tcp", w.addr.String())
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
			_ = s.Serve(nc)
			stop()
		}
	}()
}

func (w *world) disconnect(s *simulated) {
	if !s.connected {
		return
	}
	s.connected = false
	s.stop()
	<-s.done
}

// expected computes, from the present state at once, what each switch must hold.
func (w *world) expected(snap state.Snapshot) map[model.DPID][]string {
	type claim struct {
		owner flow.Owner
		rule  flow.Rule
	}
	cells := map[model.DPID]map[flow.Key][]claim{}
	groups := map[model.DPID]map[uint32]flow.Group{} // no two owners have one
	for _, h := range all.Handlers() {
		for _, o := range h.Owners(snap) {
			set, _ := h.Rules(snap, o)
			for _, r := range set.Rules {
				if cells[r.Switch] == nil {
					cells[r.Switch] = map[flow.Key][]claim{}
				}
				cells[r.Switch][r.Key()] = append(cells[r.Switch][r.Key()], claim{o, r})
			}
			for _, g := range set.Groups {
				if groups[g.Switch] == nil {
					groups[g.Switch] = map[uint32]flow.Group{}
				}
				groups[g.Switch][g.ID] = g
			}
		}
	}
	out := map[model.DPID][]string{}
	for d, s := range w.switches {
		out[d] = []string{}
		whole := map[uint32]bool{}
		for _, g := range groups[d] {
			if g, ok := s.numberGroup(g); ok {
				whole[g.ID] = true
				out[d] = append(out[d], g.String())
			}
		}
		for _, cs := range cells[d] {
			slices.SortFunc(cs, func(a, b claim) int { return strings.Compare(string(a.owner), string(b.owner)) })
			r, ok := s.number(cs[0].rule)
			for _, a := range r.Actions {
				// A rule waits for the ports of its group.
				if g, is := a.(flow.ToGroup); is && !whole[g.ID] {
					ok = false
				}
			}
			if ok {
				out[d] = append(out[d], r.String())
			}
		}
		slices.Sort(out[d])
	}
	return out
}

// look finds the number of a port; ok is false if it is missing.
func (s *simulated) look(p flow.Port) (flow.Port, bool) {
	if p.Name == "" {
		return p, true
	}
	n, ok := s.ports[p.Name]
	return flow.NumberedPort(n), ok
}

// number fills in the port numbers of a rule; ok is false if a port is missing.
func (s *simulated) number(r flow.Rule) (_ flow.Rule, ok bool) {
	if r.Match.InPort, ok = s.look(r.Match.InPort); !ok {
		return r, false
	}
	r.Actions, ok = s.numberActions(r.Actions)
	return r, ok
}

// numberGroup does the same with a group.
func (s *simulated) numberGroup(g flow.Group) (_ flow.Group, ok bool) {
	g.Buckets = slices.Clone(g.Buckets)
	for i := range g.Buckets {
		if g.Buckets[i].Actions, ok = s.numberActions(g.Buckets[i].Actions); !ok {
			return g, false
		}
	}
	return g, true
}

func (s *simulated) numberActions(actions []flow.Action) (_ []flow.Action, ok bool) {
	actions = slices.Clone(actions)
	for i, a := range actions {
		if o, is := a.(flow.Output); is {
			if o.Port, ok = s.look(o.Port); !ok {
				return actions, false
			}
			actions[i] = o
		}
	}
	return actions, true
}

// settles waits until every connected switch holds what is computed at once.
func (w *world) settles(seed uint64) {
	w.t.Helper()
	end := time.Now().Add(30 * time.Second)
	for {
		bad := w.difference()
		if bad == "" {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("seed %d: %s\nsteps:\n  %s\nwaiting: %v", seed, bad, strings.Join(w.log, "\n  "), w.engine.Waiting(reconcile.Filter{}))
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *world) difference() string {
	snap := w.db.Snapshot()
	want := w.expected(snap)
	for d, s := range w.switches {
		if !s.connected {
			continue
		}
		got := []string{}
		for _, r := range s.Rules() {
			got = append(got, r.String())
		}
		for _, g := range s.Groups() {
			got = append(got, g.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, want[d]) {
			return fmt.Sprintf("switch %s holds\n  %s\nbut at once it is\n  %s", d, strings.Join(got, "\n  "), strings.Join(want[d], "\n  "))
		}
		if sw := snap.Switch(d); sw == nil || !sw.Connected {
			return fmt.Sprintf("switch %s is not connected", d)
		}
	}
	for n := range snap.Nodes() {
		complete := true
		for _, d := range state.NodeBridges(n) {
			complete = complete && w.sw(d).connected
		}
		if complete != (snap.NodeState(n.Hostname) == model.NodeComplete) {
			return fmt.Sprintf("node %s is %s", n.Hostname, snap.NodeState(n.Hostname))
		}
	}
	gateways := map[string]bool{}
	for n := range snap.Nodes() {
		if n.Type == model.NodeGateway && snap.NodeState(n.Hostname) == model.NodeComplete {
			gateways[n.Hostname] = true
		}
	}
	zones := map[uint16]string{}
	for r := range snap.Routers() {
		st := snap.RouterStatus(r.Name)
		switch {
		case st == nil:
			return fmt.Sprintf("nothing is decided about router %s", r.Name)
		case (st.Gateway == "") != (len(gateways) == 0) || st.Gateway != "" && !gateways[st.Gateway]:
			return fmt.Sprintf("router %s has gateway %q of %v", r.Name, st.Gateway, gateways)
		case st.Zone == 0 || zones[st.Zone] != "":
			return fmt.Sprintf("router %s has zone %d as %q", r.Name, st.Zone, zones[st.Zone])
		}
		zones[st.Zone] = r.Name
	}
	return ""
}

func (w *world) recomputeDifferences() float64 {
	var n float64
	mfs, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, mf := range mfs {
		if mf.GetName() == "kvnet_recompute_differences" {
			for _, m := range mf.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
