package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"kvnet/cluster/gossip"
	"kvnet/cluster/leader"
	"kvnet/cluster/store"
	"kvnet/handlers/all"
	"kvnet/handlers/routerarp"
	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/reconcile"
	"kvnet/southbound/stats"
)

// leading is what the process does under one term.
type leading struct {
	term   store.Term
	engine *reconcile.Engine
	prober *routerarp.Prober
}

// work leads under a term until ctx ends or the term does.
func (s *server) work(ctx context.Context, t store.Term) error {
	engine := reconcile.New(reconcile.Config{
		DB: s.db, Handlers: all.Handlers(), Logger: s.log, Metrics: s.metrics,
		AuditInterval: s.c.auditInterval, FullAuditInterval: s.c.fullAuditInterval,
	})
	decider := leader.NewDecider(leader.DeciderConfig{DB: s.db, Store: s.store, Term: t, ZoneBase: s.c.snatZoneBase, Logger: s.log})
	prober := routerarp.NewProber(routerarp.ProberConfig{DB: s.db, Sender: sender{s}, Learner: decider, Logger: s.log})
	counters := stats.NewPoller(stats.Config{DB: s.db, Gauges: s.gauges, Session: s.session, Logger: s.log})
	s.leading.Store(&leading{t, engine, prober})
	defer s.leading.Store(nil)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return engine.Run(ctx) })
	g.Go(func() error { return decider.Run(ctx) })
	g.Go(func() error { return prober.Run(ctx) })
	g.Go(func() error { return counters.Run(ctx) })
	g.Go(func() error { return s.watchStale(ctx, t) })
	g.Go(func() error { return s.watchReach(ctx, t) })
	g.Go(func() error { s.store.KeepAway(ctx, s.present); return nil })
	s.askMaster(t)
	err := g.Wait()
	s.askSlave(t, true)
	return err
}

// young is the age below which a store may raise its epoch by itself: a store
// that was just made or restored can't know what switches have seen before.
const young = 10 * time.Minute

var errEpochRaised = errors.New("the epoch was raised: a new term is needed")

// watchStale deals with switches that know a newer generation than this term's.
func (s *server) watchStale(ctx context.Context, t store.Term) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case gen := <-s.stale:
			if gen < t.Generation() {
				continue
			}
			made, err := s.store.Created(ctx)
			if err != nil {
				s.log.Warn("can't tell the age of the store", "error", err)
				continue
			}
			if time.Since(made) > young {
				s.log.Error("a switch knows a newer leader; if that is the past of a lost store, run `kvnet cluster raise-epoch`",
					"switch_generation", gen, "generation", t.Generation())
				continue
			}
			epoch, err := s.raiseEpoch(ctx, t)
			if err != nil {
				return err
			}
			s.log.Warn("epoch raised: a switch remembers a former store", "epoch", epoch, "switch_generation", gen)
			return errEpochRaised
		}
	}
}

// raiseEpoch makes the epoch newer than that of the term, than the present time
// and than every generation that a switch has refused this server for.
func (s *server) raiseEpoch(ctx context.Context, t store.Term) (uint32, error) {
	known := uint32(s.newest.Load()>>32) + 1
	epoch, err := s.store.RaiseEpoch(ctx, max(t.Epoch+1, known, uint32(time.Now().Unix())))
	if err != nil {
		return 0, fmt.Errorf("raise the epoch of the cluster: %w", err)
	}
	return epoch, nil
}

// notLeading is the error of what only the leader can do. It names the leader.
func (s *server) notLeading() error {
	if err := s.ledElsewhere(); err != nil {
		return err
	}
	return notLeader("this server does not lead at the moment")
}

// notLeader is a sentence about who leads in place of this server.
type notLeader string

func (n notLeader) Error() string { return string(n) }

func (notLeader) Is(target error) bool { return target == store.ErrNotLeader }

// ledElsewhere is an error that names the leader or says that none is known, or nil
// if no other server has led.
func (s *server) ledElsewhere() error {
	st, g := s.opened.Load(), s.gossip.Load()
	if st == nil || g == nil {
		return nil
	}
	if why := s.trouble(); why != "" {
		return notLeader("this server knows of no leader: " + why)
	}
	t, _ := st.Leader()
	if t.Name == "" || t.Name == s.c.name {
		return nil
	}
	return leaderAmong(t.Name, g.Members())
}

// leaderAmong says where the recorded leader is, or that none is known.
func leaderAmong(name string, members []gossip.Member) error {
	for _, m := range members {
		switch {
		case m.Name != name:
		case m.State == gossip.Alive:
			return notLeader(fmt.Sprintf("this server does not lead; ask %q, its REST is at %s", name, m.Meta.REST))
		default:
			return notLeader(fmt.Sprintf("this server knows of no leader: the last one, %q, has %s", name, m.State))
		}
	}
	return notLeader(fmt.Sprintf("this server knows of no leader: the last one, %q, is not there", name))
}

// epochs raises the epoch on a client's request and takes a term of it.
type epochs struct{ s *server }

func (e epochs) RaiseEpoch(ctx context.Context) (uint32, error) {
	l := e.s.leading.Load()
	if l == nil {
		return 0, fmt.Errorf("raise the epoch of the cluster: %w", e.s.notLeading())
	}
	epoch, err := e.s.raiseEpoch(ctx, l.term)
	if err == nil {
		e.s.renew()
	}
	return epoch, err
}

// events hands what switches do to whoever leads.
type events struct{ s *server }

func (e events) MasterUp(x *openflow.Session) {
	if l := e.s.leading.Load(); l != nil {
		l.engine.MasterUp(x)
	}
}

func (e events) SessionDown(x *openflow.Session, err error) {
	if l := e.s.leading.Load(); l != nil {
		l.engine.SessionDown(x, err)
	}
}

func (e events) FlowRemoved(x *openflow.Session, f openflow.FlowRemoved) {
	if l := e.s.leading.Load(); l != nil {
		l.engine.FlowRemoved(x, f.Cookie, f.Reason == reconcile.ReasonGroupDelete)
	}
}

func (e events) PacketIn(x *openflow.Session, p openflow.PacketIn) {
	if l := e.s.leading.Load(); l != nil {
		l.prober.HandlePacketIn(x.DPID(), p.InPort, p.Data)
	}
}

func (e events) Stale(x *openflow.Session, generation uint64) {
	e.s.log.Warn("switch refuses this leader", "switch", x.DPID(), "switch_generation", generation)
	for old := e.s.newest.Load(); generation > old && !e.s.newest.CompareAndSwap(old, generation); {
		old = e.s.newest.Load()
	}
	select {
	case e.s.stale <- generation:
	default: // one is being dealt with; the switch asks again
	}
}

// session is the session with a switch for those who read its counters.
func (s *server) session(d model.DPID) (stats.Session, bool) {
	x := s.of.Session(d)
	return x, x != nil
}

// sender sends single packets for the prober.
type sender struct{ s *server }

func (x sender) PacketOut(ctx context.Context, d model.DPID, port string, frame []byte) error {
	sess, p := x.s.of.Session(d), x.s.db.Snapshot().SwitchPort(d, port)
	if sess == nil || p == nil {
		return fmt.Errorf("send a packet to port %q of switch %s: it is not connected or has no such port", port, d)
	}
	m, err := openflow.PacketOut(flow.NumberedPort(p.Number), frame)
	if err != nil {
		return fmt.Errorf("send a packet to port %q of switch %s: %w", port, d, err)
	}
	if err := sess.Send(ctx, m); err != nil {
		return fmt.Errorf("send a packet to port %q of switch %s: %w", port, d, err)
	}
	return nil
}
