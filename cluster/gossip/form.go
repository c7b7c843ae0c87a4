package gossip

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// FormConfig says what this server brings to the founding of a cluster.
type FormConfig struct {
	// Expect is the number of servers that found a cluster together. 0: this
	// server founds none; it waits for a cluster that it can join.
	Expect int
	// Self is this server as a member of the store.
	Self StoreMember
	// HasData says that this server's store holds data, so that it can't found.
	HasData bool
	// Records keeps what this server has promised, beside the store's data.
	Records Records

	died func(at string) bool // for tests: the server ends here
}

// ErrHasData says that a server with data was to found or join a cluster.
var ErrHasData = errors.New("this server has data already: it can neither found nor join another cluster")

// The kinds of requests for founding a cluster.
const (
	askKind      = "form/ask"
	promiseKind  = "form/promise"
	withdrawKind = "form/withdraw"
	formCallTime = 3 * time.Second
	formLook     = time.Second
)

// former is a founding under way.
type former struct {
	g *Gossip
	c FormConfig

	mu   sync.Mutex // also held while rec is saved: a promise is one step
	rec  Record
	over bool // nothing is promised any more
}

// Form waits until this server is in a cluster: as one of c.Expect servers that
// found it, or because others have founded it. Until then it looks on, and logs
// why nothing comes of it whenever the reason changes.
//
// The server with the lowest name makes the plan. Everybody keeps it on disk and
// promises it, then the founder keeps on disk that it is committed, and tells
// its cluster id by gossip, which is how the others learn of it. A server that
// ends in between calls Form again with the same Records. The plan that Form
// returns is committed, and this server belongs to the cluster from then on
// (ClusterID). A plan with Joining says only whom to ask; SetCluster must follow
// when the cluster has taken this server in.
func (g *Gossip) Form(ctx context.Context, c FormConfig) (Plan, error) {
	if c.HasData {
		return Plan{}, ErrHasData
	}
	if c.Self.Name != g.c.Name {
		return Plan{}, fmt.Errorf("found a cluster: %q is not the name of this server, %q", c.Self.Name, g.c.Name)
	}
	if err := checkMember(c.Self); err != nil {
		return Plan{}, fmt.Errorf("found a cluster: %w", err)
	}
	f := &former{g: g, c: c}
	var err error
	if f.rec, err = c.Records.Load(); err != nil {
		return Plan{}, fmt.Errorf("found a cluster: %w", err)
	}
	if f.rec.Committed {
		return *f.rec.Plan, g.SetCluster(f.rec.Plan.ClusterID)
	}
	if id := g.ClusterID(); id != "" {
		return Plan{}, fmt.Errorf("found a cluster: this server belongs to the cluster %q", id)
	}
	err = g.UpdateMeta(func(m *Meta) { m.Expect, m.HasData, m.PeerURL = c.Expect, false, c.Self.PeerURL })
	if err != nil {
		return Plan{}, fmt.Errorf("found a cluster: %w", err)
	}
	for kind, h := range map[string]Handler{askKind: f.ask, promiseKind: f.promise, withdrawKind: f.withdraw} {
		g.Handle(kind, h)
		defer g.Handle(kind, nil)
	}
	return f.run(ctx)
}

func (f *former) run(ctx context.Context) (Plan, error) {
	look := time.NewTicker(formLook)
	defer look.Stop()
	var said string
	for {
		changed := f.g.Changes()
		plan, err := f.step(ctx)
		if plan != nil {
			return *plan, err
		}
		if errors.Is(err, errDied) {
			return Plan{}, err
		}
		level := slog.LevelWarn
		if w := waiting(""); errors.As(err, &w) {
			level = slog.LevelInfo
		} else if err != nil {
			f.g.trouble.set(err.Error())
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			f.g.c.Logger.Log(ctx, level, "this server is in no cluster yet", "reason", said)
		}
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			return Plan{}, context.Cause(ctx)
		case <-f.g.closing.Done():
			return Plan{}, ErrClosed
		}
	}
}

// step does what can be done now. It returns the plan that was committed, or why
// there is none.
func (f *former) step(ctx context.Context) (*Plan, error) {
	members := f.g.Members()
	if plan, err := f.meet(members); plan != nil || err != nil {
		return plan, err
	}
	if f.c.Expect == 0 {
		return nil, waiting("no member of a cluster has been met, and this server expects none to found one with")
	}
	names, err := assembled(f.c.Expect, members)
	if err != nil {
		return nil, err
	}
	if names[0] != f.c.Self.Name {
		// A plan that this server made before one with a lower name came must
		// not stand in that one's way.
		if rec := f.record(); rec.Plan != nil && rec.Plan.founder() == f.c.Self.Name {
			return nil, f.giveUp(ctx, rec, names)
		}
		return nil, waiting("server " + names[0] + " is to found the cluster")
	}
	answers, err := f.askAll(ctx, names[1:])
	if err != nil {
		return nil, err
	}
	rec := f.record()
	d, err := decide(f.c.Self, f.c.Expect, rec, answers)
	switch {
	case err != nil:
		return nil, err
	case d.giveUp:
		return nil, f.giveUp(ctx, rec, names)
	}
	return f.found(ctx, rec, d)
}

// meet looks for members of a cluster: the one that this server has promised to
// be in, or one to join.
func (f *former) meet(members []Member) (*Plan, error) {
	var cluster string
	var names []string
	for _, m := range alive(members) {
		if m.Name != f.c.Self.Name && m.Meta.ClusterID != "" {
			cluster = m.Meta.ClusterID
			names = append(names, m.Name)
		}
	}
	if cluster == "" {
		return nil, nil
	}
	rec := f.record()
	p := rec.Plan
	switch {
	case p == nil:
	case p.ClusterID == cluster:
		return f.commit(p)
	case p.founder() == f.c.Self.Name:
		rec = rec.withdraw()
	case slices.Contains(names, p.founder()):
		rec.Plan = nil // its founder would not be in another cluster if it had committed it
	default:
		return nil, fmt.Errorf("members of the cluster %q are here, but this server has promised the plan %q of server %q, which is not in that cluster",
			cluster, p.ClusterID, p.founder())
	}
	if err := f.replace(p, rec, true); err != nil {
		return nil, err
	}
	f.g.c.Logger.Info("a cluster to join has been found", "cluster", cluster, "members", strings.Join(names, ", "))
	return &Plan{ClusterID: cluster, Joining: true, Ask: names}, nil
}

// found makes everybody promise a plan and commits it.
func (f *former) found(ctx context.Context, rec Record, d decision) (*Plan, error) {
	p := d.propose
	if d.fresh {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		p = &Plan{ClusterID: hex.EncodeToString(id[:]), Members: p.Members}
	}
	old := rec.Plan
	rec.Plan = p
	if err := f.replace(old, rec, false); err != nil {
		return nil, err
	}
	if f.died("planned") {
		return nil, errDied
	}
	for name, id := range d.stale {
		if _, err := f.call(ctx, name, withdrawKind, []byte(id)); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	for _, m := range p.Members[1:] {
		if _, err := f.call(ctx, m.Name, promiseKind, b); err != nil {
			return nil, err
		}
		if f.died("promised by " + m.Name) {
			return nil, errDied
		}
	}
	return f.commit(p)
}

// commit keeps on disk that all have promised the plan, and tells the others.
func (f *former) commit(p *Plan) (*Plan, error) {
	rec := f.record()
	rec.Committed = true
	if err := f.replace(p, rec, true); err != nil {
		return nil, err
	}
	if f.died("committed") {
		return nil, errDied
	}
	f.g.c.Logger.Info("a cluster has been founded", "cluster", p.ClusterID, "members", strings.Join(p.names(), ", "))
	return p, f.g.SetCluster(p.ClusterID)
}

// giveUp withdraws a plan that this server made.
func (f *former) giveUp(ctx context.Context, rec Record, names []string) error {
	p := rec.Plan
	if err := f.replace(p, rec.withdraw(), false); err != nil {
		return err
	}
	for _, name := range names {
		if name != f.c.Self.Name {
			// Who doesn't hear it is told when it is asked the next time.
			_, _ = f.call(ctx, name, withdrawKind, []byte(p.ClusterID))
		}
	}
	return waiting(fmt.Sprintf("the plan for %s has been withdrawn: other servers are here now", strings.Join(p.names(), ", ")))
}

var errDied = errors.New("the server ends here")

func (f *former) died(at string) bool { return f.c.died != nil && f.c.died(at) }
