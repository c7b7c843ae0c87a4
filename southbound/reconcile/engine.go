package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// Config says how an Engine works. Zero durations take the defaults.
type Config struct {
	DB       *state.DB
	Handlers []handlers.Handler
	Logger   *slog.Logger
	Metrics  *Metrics // nil: the counters are not published

	// AuditInterval is the time between two comparisons of cookies and groups of
	// a switch, FullAuditInterval between two comparisons of what the rules do
	// and between two full recomputes. Defaults: 30 s and 5 min.
	AuditInterval, FullAuditInterval time.Duration
	// WaveTimeout bounds how long a change over several switches waits for the
	// adds to be answered before it deletes. Default: 500 ms.
	WaveTimeout time.Duration
	// DeleteHold bounds how long deletes on a switch wait for ports that rules
	// there need. Default: 10 s.
	DeleteHold time.Duration
	// AssembleHold bounds how long deletes on a switch that has just connected
	// wait for the other bridges of its node. Default: 2 s.
	AssembleHold time.Duration
	// RefusedBackoff is the first time for which an owner is set aside; it
	// doubles with each refusal, up to 64 times. Default: 1 s.
	RefusedBackoff time.Duration
}

func (c *Config) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.AuditInterval, 30*time.Second)
	set(&c.FullAuditInterval, 5*time.Minute)
	set(&c.WaveTimeout, 500*time.Millisecond)
	set(&c.DeleteHold, 10*time.Second)
	set(&c.AssembleHold, 2*time.Second)
	set(&c.RefusedBackoff, time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
}

// Engine keeps switches equal to what the handlers want. It works while Run runs,
// which is while this server leads; sessions and removals reach it through the
// methods of openflow.Events that it has.
type Engine struct {
	cfg       Config
	db        *state.DB
	log       *slog.Logger
	metrics   *Metrics
	announcer *announcer

	complete atomic.Bool // the snapshot was complete once
	planned  atomic.Bool // the first plan is made
	since    time.Time   // of the take-over; set before the first target runs

	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	ctx     context.Context
	targets map[model.DPID]*target
	waiting map[flow.Owner][]handlers.Waiting

	// The fields below belong to the goroutine of Run.
	owners map[flow.Owner]*owned
	round  uint32 // of compute
	snap   state.Snapshot
	queue  []flow.Owner // of the full recompute that is under way
}

// New makes an Engine. It does nothing before Run.
func New(c Config) *Engine {
	c.defaults()
	return &Engine{cfg: c, db: c.DB, log: c.Logger, metrics: c.Metrics, announcer: newAnnouncer(),
		since: time.Now(), targets: map[model.DPID]*target{}, waiting: map[flow.Owner][]handlers.Waiting{},
		owners: map[flow.Owner]*owned{}}
}

// spread makes a timer whose first period is between half of d and d, so that what
// begins for many switches at once does not go on in step.
func spread(d time.Duration) *time.Timer {
	return time.NewTimer(d - time.Duration(rand.Int64N(int64(d/2)+1)))
}

// Run works until ctx ends. It may be called once.
func (e *Engine) Run(ctx context.Context) error {
	sub, snap := e.db.Subscribe()
	defer sub.Close()
	e.mu.Lock()
	e.ctx, e.since = ctx, time.Now()
	for _, t := range e.targets {
		e.start(t)
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.ctx = nil // no worker starts any more
		e.mu.Unlock()
		e.wg.Wait()
	}()

	for !snap.Complete() {
		var err error
		if snap, _, err = sub.Next(ctx); err != nil {
			return nil
		}
	}
	e.complete.Store(true)
	// The changes that are still to be taken are those after this snapshot.
	e.first(snap)

	full := spread(e.cfg.FullAuditInterval)
	defer full.Stop()
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C():
			snap, changes := sub.Take()
			e.plan(ctx, snap, changes)
		case <-full.C:
			e.prune()
			e.beginFull()
			full.Reset(jitter(e.cfg.FullAuditInterval))
		case <-tick.C:
			e.someOfFull(ctx)
		}
		if len(e.queue) > 0 {
			tick.Reset(5 * time.Millisecond)
		}
	}
}

// first plans everything from the first complete snapshot.
func (e *Engine) first(snap state.Snapshot) {
	e.snap = snap
	b := newBatch()
	for _, h := range e.cfg.Handlers {
		for _, o := range h.Owners(snap) {
			e.compute(h, o, b)
		}
	}
	for sw := range snap.Switches() {
		if sw.Connected {
			for p := range snap.SwitchPorts(sw.DPID) {
				e.portChanged(sw.DPID, p.Name, b)
			}
		}
	}
	e.planned.Store(true)
	b.release()
	b.unstage()
	e.mu.Lock()
	for _, t := range e.targets {
		t.wake()
	}
	e.mu.Unlock()
	e.log.Info("leading: rules computed", "owners", len(e.owners), "revision", snap.Revision())
}

// plan takes in changes of the state.
func (e *Engine) plan(ctx context.Context, snap state.Snapshot, changes []model.Change) {
	before := e.snap
	e.snap = snap
	b := newBatch()
	affected := map[flow.Owner]handlers.Handler{}
	for _, c := range changes {
		for _, h := range e.cfg.Handlers {
			// Changes come together with others, so an owner may be related to the
			// object in the state before only, or only in the one after.
			for _, db := range [...]state.Snapshot{before, snap} {
				for _, o := range h.Affected(db, c) {
					affected[o] = h
				}
			}
		}
		if c.Kind == model.KindSwitchPort {
			if p := model.Versions[*model.SwitchPort](c); len(p) > 0 {
				e.portChanged(p[0].DPID, p[0].Name, b)
			}
		}
		if c.Kind == model.KindSwitch {
			for _, sw := range model.Versions[*model.Switch](c) {
				e.forget(sw.DPID)
			}
		}
		if c.Kind == model.KindNodeStatus {
			// A node that has become complete ends the hold on its switches.
			if _, now := model.OldNew[*model.NodeStatus](c); now != nil && now.State == model.NodeComplete {
				e.wakeNode(now.Hostname)
			}
		}
	}
	owners := slices.AppendSeq(make([]flow.Owner, 0, len(affected)), maps.Keys(affected))
	slices.Sort(owners)
	for _, o := range owners {
		e.compute(affected[o], o, b)
	}
	e.send(ctx, b)
}

func (e *Engine) wakeNode(hostname string) {
	n := e.snap.Node(hostname)
	if n == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range state.NodeBridges(n) {
		if t := e.targets[d]; t != nil {
			t.wake()
		}
	}
}

// target returns the switch's target, made anew if there is none.
func (e *Engine) target(d model.DPID) *target {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.targetLocked(d)
}

func (e *Engine) targetLocked(d model.DPID) *target {
	t := e.targets[d]
	if t == nil {
		t = newTarget(e, d)
		e.targets[d] = t
		e.start(t)
	}
	return t
}

// start starts the worker of a target; called with e.mu held.
func (e *Engine) start(t *target) {
	if e.ctx == nil || t.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	t.stop = cancel
	e.wg.Go(func() {
		defer cancel()
		t.run(ctx)
	})
}

func (e *Engine) existing(d model.DPID) *target {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.targets[d]
}

// assembling tells whether the switch belongs to a node that is not complete.
func (e *Engine) assembling(d model.DPID) bool {
	s := e.db.Snapshot()
	n := s.NodeByBridge(d)
	return n != nil && s.NodeState(n.Hostname) != model.NodeComplete
}

// portChanged tells a switch's target that a port has come, changed or gone.
func (e *Engine) portChanged(d model.DPID, name string, b *batch) {
	t := e.existing(d)
	if t == nil {
		return
	}
	b.stage(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	// The worker may have taken newer ports from the state than this change
	// knows, so that counts which is there now. Ports that went with their
	// connection are not gone: nothing is known of them until the switch is back.
	s := e.db.Snapshot()
	if sw := s.Switch(d); sw == nil || !sw.Connected {
		return
	}
	var number uint32
	p := s.SwitchPort(d, name)
	if p != nil {
		number = p.Number
	}
	if t.setPort(name, number, p != nil) {
		b.touch(t)
	}
}

// MasterUp says that this server is MASTER of the session's switch, whose ports
// are in the state.
func (e *Engine) MasterUp(s Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.targetLocked(s.DPID())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.synced, t.upSince, t.lastError, t.lagging = s, false, time.Now(), "", false
	t.wake()
}

// SessionDown says that a session has ended.
func (e *Engine) SessionDown(s Session, reason error) {
	t := e.existing(s.DPID())
	if t == nil {
		return
	}
	t.mu.Lock()
	if t.session != s {
		t.mu.Unlock()
		return
	}
	t.session, t.synced = nil, false
	if reason != nil {
		t.lastError = reason.Error()
	}
	t.answered(t.gen)
	t.sched = nil
	t.mu.Unlock()
	// Its responders can't be removed any more: the switch counts as gone.
	announceDeferred(e.announcer.gone(s.DPID()), time.Now())
	t.wake()
}

// FlowRemoved says that a switch has removed a rule with this cookie; groupGone
// tells that it went with its group.
func (e *Engine) FlowRemoved(s Session, cookie uint64, groupGone bool) {
	if !own(cookie) {
		return
	}
	t := e.existing(s.DPID())
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// The report of a rule that was just added may overtake the worker that
	// learns that it was.
	c := t.cookie[cookie]
	if t.session != s || t.held[cookie] == nil && (c == nil || !c.inflight) {
		return
	}
	t.suspects[cookie] = struct{}{}
	t.recheck = t.recheck || groupGone
	t.wake()
}

// ReasonGroupDelete is OFPRR_GROUP_DELETE (OpenFlow 1.3.5, section 7.4.2).
const ReasonGroupDelete = 3

// Events adapts e to the events of an OpenFlow server, for what concerns it.
type Events struct{ Engine *Engine }

// MasterUp passes the session on.
func (v Events) MasterUp(s *openflow.Session) { v.Engine.MasterUp(s) }

// SessionDown passes the end of the session on.
func (v Events) SessionDown(s *openflow.Session, err error) { v.Engine.SessionDown(s, err) }

// FlowRemoved passes the removal on.
func (v Events) FlowRemoved(s *openflow.Session, f openflow.FlowRemoved) {
	v.Engine.FlowRemoved(s, f.Cookie, f.Reason == ReasonGroupDelete)
}
