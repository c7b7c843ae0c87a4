package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvnet/handlers"
	"kvnet/handlers/all"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/reconcile"
)

const (
	manyRules = 20_000
	rounds    = 5
)

// kvnetRules are the first n rules that kvnet's own handlers want on a switch of
// a cloud, by owner. Rules that several owners share count once. Announcements are
// left out: they are packets, not rules.
func kvnetRules(d model.DPID, n int) (sets, error) {
	// A port has at least one rule on each bridge of the gateway.
	db, err := newState(n)
	if err != nil {
		return nil, err
	}
	snap, out, seen := db.Snapshot(), sets{}, map[flow.Key]bool{}
	for _, h := range all.Handlers() {
		for _, o := range h.Owners(snap) {
			wanted, _ := h.Rules(snap, o)
			for _, r := range wanted.Rules {
				if r.Switch != d || n == 0 || seen[r.Key()] {
					continue
				}
				seen[r.Key()] = true
				r.Announce = nil
				n--
				set := out[o]
				set.Rules = append(set.Rules, r)
				out[o] = set
			}
		}
	}
	if n > 0 {
		return nil, fmt.Errorf("the handlers want %d rules less than needed on %s", n, d)
	}
	return out, nil
}

// given is a handler whose owners want rules that are made already, while it is
// on. A change of any network has them looked at anew.
type given struct {
	sets   sets
	owners []flow.Owner
	on     atomic.Bool
}

func newGiven(s sets) *given { return &given{sets: s, owners: slices.Sorted(maps.Keys(s))} }

func (*given) Name() string { return "given" }

func (g *given) Affected(_ state.Snapshot, c model.Change) []flow.Owner {
	if c.Kind != model.KindNetwork {
		return nil
	}
	return g.owners
}

func (g *given) Rules(_ state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	if !g.on.Load() {
		return flow.Set{}, nil
	}
	return g.sets[o], nil
}

func (g *given) Owners(state.Snapshot) []flow.Owner {
	if !g.on.Load() {
		return nil
	}
	return g.owners
}

// watched is a session that tells of each bundle that was committed.
type watched struct {
	*openflow.Session
	committed func(messages int, at time.Time)
}

func (w *watched) Bundle(ctx context.Context, m []openflow.Message) error {
	return w.answered(len(m), w.Session.Bundle(ctx, m))
}

func (w *watched) Finish(ctx context.Context, b *openflow.Started, m []openflow.Message) error {
	return w.answered(len(m), w.Session.Finish(ctx, b, m))
}

func (w *watched) answered(messages int, err error) error {
	if err == nil {
		w.committed(messages, time.Now())
	}
	return err
}

// installer is an engine with an OpenFlow server and one real switch.
type installer struct {
	db     *state.DB
	given  *given
	engine *reconcile.Engine
	rev    int64
	up     chan struct{}
	done   chan time.Time // when all rules were committed
	mu     sync.Mutex
	x      *watched
	count  int
}

func (i *installer) MasterUp(s *openflow.Session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.x = &watched{s, i.committed}
	i.engine.MasterUp(i.x)
	select {
	case i.up <- struct{}{}:
	default:
	}
}

func (i *installer) SessionDown(s *openflow.Session, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.x == nil || i.x.Session != s {
		return // it never was master
	}
	i.engine.SessionDown(i.x, err)
}

func (i *installer) FlowRemoved(_ *openflow.Session, f openflow.FlowRemoved) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.engine.FlowRemoved(i.x, f.Cookie, f.Reason == reconcile.ReasonGroupDelete)
}

func (*installer) PacketIn(*openflow.Session, openflow.PacketIn) {}
func (*installer) Stale(*openflow.Session, uint64)               {}

func (i *installer) committed(n int, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count += n; i.count == i.given.sets.rules() {
		i.count = 0
		i.done <- at
	}
}

// set makes the engine want the rules, or nothing, and returns how long it took
// until the switch had confirmed the last bundle.
func (i *installer) set(ctx context.Context, on bool) (time.Duration, error) {
	i.given.on.Store(on)
	i.rev++
	n := &model.Network{Meta: model.Meta{Created: 1, Modified: i.rev}, ID: "n"}
	began := time.Now()
	if err := i.db.Apply(i.rev, []state.Event{{Kind: model.KindNetwork, Key: n.ID, Object: n}}); err != nil {
		return 0, fmt.Errorf("change the state: %w", err)
	}
	at, err := await(ctx, i.done, time.Minute)
	if err != nil {
		return 0, fmt.Errorf("wait until %d rules are committed: %w", i.given.sets.rules(), err)
	}
	return at.Sub(began), nil
}

// newInstaller starts an engine for a bridge with its controller's socket.
func newInstaller(ctx context.Context, socket string, s sets) (i *installer, stop func(), err error) {
	i = &installer{db: state.New(), given: newGiven(s), rev: revision, up: make(chan struct{}, 1), done: make(chan time.Time, 1)}
	if err := i.db.Replace(i.rev, nil); err != nil {
		return nil, nil, fmt.Errorf("fill the state: %w", err)
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for the switch: %w", err)
	}
	engine, stopEngine := startEngine(i.db, []handlers.Handler{i.given})
	i.engine = engine
	server := openflow.NewServer(openflow.Config{Observer: i.db, Events: i, Logger: quiet()})
	serving, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(serving, ln) }) // it ends with its context
	stop = func() { cancel(); running.Wait(); stopEngine() }
	server.SetRole(openflow.Role{Master: true, Generation: 1})
	return i, stop, nil
}

// measureRules installs rules of kvnet's on one bridge by reconcile and the same
// on another by ovs-ofctl, in turn.
func measureRules(ctx context.Context, d model.DPID, name string) (f figure, err error) {
	rules, err := kvnetRules(d, manyRules)
	if err != nil {
		return f, err
	}
	l, err := lab.New()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	node, err := l.AddNode(ctx, "sw")
	if err != nil {
		return f, err
	}
	const ours, theirs = "br-kvnet", "br-ofctl"
	for _, b := range []ovs.Bridge{
		{Name: ours, DPID: d, Controlled: true, Ports: patches(d, "")},
		{Name: theirs, Ports: patches(d, "-2")},
	} {
		if err := node.AddBridge(ctx, b); err != nil {
			return f, err
		}
	}
	i, stop, err := newInstaller(ctx, node.ControllerSocket(ours), rules)
	if err != nil {
		return f, err
	}
	defer stop()
	if err := node.Reconnect(ctx, ours); err != nil {
		return f, err
	}
	select {
	case <-i.up:
	case <-time.After(20 * time.Second):
		return f, errors.New("the switch did not connect")
	case <-ctx.Done():
		return f, context.Cause(ctx)
	}

	file := filepath.Join(l.Dir, "rules")
	var kvnet, ofctl times
	for n := range rounds {
		if err := rest(ctx); err != nil {
			return f, err
		}
		took, err := i.set(ctx, true)
		if err != nil {
			return f, err
		}
		kvnet = append(kvnet, took)
		if n == 0 {
			if err := dump(ctx, node, ours, file); err != nil {
				return f, err
			}
		}
		if err := holds(ctx, node, ours, manyRules); err != nil {
			return f, err
		}
		if _, err := i.set(ctx, false); err != nil {
			return f, err
		}
		if _, err := node.Ofctl(ctx, nil, "del-flows", theirs); err != nil {
			return f, err
		}
		if err := rest(ctx); err != nil {
			return f, err
		}
		began := time.Now()
		if _, err := node.Ofctl(ctx, []string{"--bundle"}, "add-flows", theirs, file); err != nil {
			return f, err
		}
		ofctl = append(ofctl, time.Since(began))
		if err := holds(ctx, node, theirs, manyRules); err != nil {
			return f, err
		}
		if _, err := node.Ofctl(ctx, nil, "del-flows", theirs); err != nil {
			return f, err
		}
	}
	perSecond := func(t times) string { return fmt.Sprintf("%.0f", manyRules/t.best().Seconds()) }
	return figure{part: "a", ratio: fmt.Sprintf("%.2f times as many rules a second as ovs-ofctl --bundle add-flows, %s (floor 1.5, goal 2)",
		over(ofctl.best(), kvnet.best()), name),
		details: []string{
			fmt.Sprintf("kvnet, desired set to commit reply: best %s, %s rules/s (%s)", short(kvnet.best()), perSecond(kvnet), kvnet.list()),
			fmt.Sprintf("ovs-ofctl, start to end: best %s, %s rules/s (%s)", short(ofctl.best()), perSecond(ofctl), ofctl.list()),
		}}, nil
}

// rest lets what the step before has left behind come to its end: garbage here,
// and what the switch does after it has answered.
func rest(ctx context.Context) error {
	runtime.GC()
	return pause(ctx, 300*time.Millisecond)
}

// patches are the ports that the gateway's bridge d has, with their numbers. They
// lead nowhere.
func patches(d model.DPID, suffix string) (out []ovs.Port) {
	for i, name := range gatewayPorts[d] {
		out = append(out, ovs.Port{Name: name + suffix, Kind: ovs.Patch, Peer: name + suffix + "-x", Number: uint32(i + 1)})
	}
	return out
}

// dump writes the rules of a bridge to a file that ovs-ofctl add-flows reads, with
// their cookies and flags.
func dump(ctx context.Context, node *lab.Node, bridge, file string) error {
	text, err := node.Ofctl(ctx, []string{"--no-names", "--no-stats"}, "dump-flows", bridge)
	if err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, "actions=") {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the rules for ovs-ofctl: %w", err)
	}
	return nil
}

// holds checks the number of rules of a bridge.
func holds(ctx context.Context, node *lab.Node, bridge string, want int) error {
	text, err := node.Ofctl(ctx, nil, "dump-aggregate", bridge)
	if err != nil {
		return err
	}
	if !strings.Contains(text, fmt.Sprintf("flow_count=%d", want)) {
		return fmt.Errorf("bridge %s should hold %d rules: %s", bridge, want, strings.TrimSpace(text))
	}
	return nil
}
