package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"kvnet/cluster/gossip"
	"kvnet/cluster/leader"
	"kvnet/cluster/store"
	"kvnet/model/state"
	"kvnet/northbound/rest"
	"kvnet/southbound/openflow"
	"kvnet/southbound/reconcile"
	"kvnet/southbound/stats"
)

func serverCommand() *cobra.Command {
	c := &config{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the server: REST, store and the southbound to the switches",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd); err != nil {
				return err
			}
			log, err := newLogger(c.logLevel)
			if err != nil {
				return usageError{err}
			}
			for _, name := range c.notYet(cmd.Flags()) {
				log.Warn("setting has no effect yet: its part of kvnet does not exist in this version", "setting", name)
			}
			warnOfOpenKey(c.gossipKeyFile, log)
			return run(cmd.Context(), c, log)
		},
	}
	c.flags(cmd.Flags())
	return cmd
}

func newLogger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is none of debug, info, warn, error", level)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}

// server is the running process: parts that hold for its whole life, and what it
// does while it leads.
type server struct {
	c          *config
	log        *slog.Logger
	db         *state.DB
	store      *store.Store                // for what begins when it is open
	opened     atomic.Pointer[store.Store] // nil until it is open
	gossip     atomic.Pointer[gossip.Gossip]
	of         *openflow.Server
	leadership *leader.Leadership
	metrics    *reconcile.Metrics
	cluster    *clusterMetrics
	storeStats store.Observer
	gauges     *stats.Gauges
	lag        lag
	leading    atomic.Pointer[leading] // nil: not leading
	phase      phase
	peers      peers
	takeOver   chan uint64   // generations of leaders that want this server to lead
	stale      chan uint64   // generations of switches that refused ours
	newest     atomic.Uint64 // generation that a switch has refused ours for
	renew      func()        // gives up the term and takes a later one
	started    time.Time
	found      uint64       // generation of the term that was recorded at the start
	given      atomic.Int64 // when the lead was last given for the switches' sake

	roles  sync.Mutex
	master bool // what the switches were asked for last
}

// run starts everything and returns when ctx ends or a part fails.
func run(ctx context.Context, c *config, log *slog.Logger) error {
	return runWith(ctx, c, log, prometheus.NewRegistry())
}

// runWith is run with the metrics in a registry of the caller's.
func runWith(ctx context.Context, c *config, log *slog.Logger, registry *prometheus.Registry) error {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s := &server{
		c: c, log: log, db: state.New(), metrics: reconcile.NewMetrics(registry), cluster: newClusterMetrics(registry),
		storeStats: newStoreMetrics(registry), takeOver: make(chan uint64, 1), stale: make(chan uint64, 1), started: time.Now(),
	}
	s.phase.set(openingStore)

	// The sockets come first: a port that is taken is said before the store is
	// opened.
	switches, err := listenForSwitches(ctx, c, log)
	if err != nil {
		return err
	}
	defer switches.close()
	s.gauges = stats.NewGauges(s.db)
	registry.MustRegister(collector{s}, s.gauges)
	api, err := rest.New(rest.Config{
		Listen: c.restListen, MetricsListen: c.metricsListen, Store: lateStore{s}, DB: s.db, Waiting: s.notReady, Trouble: s.trouble,
		Inspector: inspector{s}, Epochs: epochs{s}, Adopter: adopter{s}, Members: members{s}, Cluster: clusterKeeper{s},
		Accounts: rest.AccountsConfig{UsersFile: c.usersFile, AllowDefaults: c.allowDefaultAccounts},
		TLS:      rest.TLSConfig{CertFile: c.restTLSCert, KeyFile: c.restTLSKey},
		Logger:   log, Registry: registry, Version: version,
	})
	if err != nil {
		return err
	}
	s.of = openflow.NewServer(openflow.Config{Observer: s.db, Events: events{s}, Logger: log})
	log.With(switches.logged()...).Info("listening", "rest", api.Addr().String(), "metrics", c.metricsListen, "data", c.dataDir)

	// REST answers before there is a cluster, and what it has begun ends before
	// the store is closed.
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return api.Serve(ctx) })
	g.Go(func() error {
		if err := s.enter(ctx, api.Addr(), switches.addr()); err != nil {
			return err
		}
		return s.serve(ctx, switches)
	})
	if err = g.Wait(); errors.Is(err, context.Canceled) {
		err = nil
	}
	if err = errors.Join(err, s.leave()); err == nil {
		log.Info("stopped")
	}
	return err
}

// serve works in the cluster until ctx ends or a part fails. Before it returns it
// hands the lead over. Sessions with switches outlast a store that is opened anew.
func (s *server) serve(ctx context.Context, switches switchListeners) error {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, life := errgroup.WithContext(life)
	for _, ln := range switches.all() {
		g.Go(func() error { return s.of.Serve(life, ln) })
	}
	g.Go(func() error {
		defer stop()
		for {
			err := s.serveStore(ctx, life)
			if !errors.Is(err, errMoved) {
				return err
			}
			if err := s.reopen(ctx); err != nil {
				return err
			}
		}
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveStore is the part of serve that lasts as long as the store stays open, and
// no longer than life. It ends with errMoved if the store has to be opened anew.
func (s *server) serveStore(ctx, life context.Context) error {
	found, _ := s.store.Leader()
	s.found = found.Generation()
	elected := make(chan election, 1)
	l, err := leader.NewLeadership(leader.LeadershipConfig{
		Store: s.store, Name: s.c.name, Logger: s.log, Stand: s.stand, Timing: s.timing,
		OnElected: func(ctx context.Context, t store.Term) {
			s.cluster.elections.Inc()
			select {
			case <-elected: // an election that ended before work on it began
			default:
			}
			elected <- election{ctx, t}
		},
		OnLost: func(store.Term) { s.cluster.lost.Inc() },
	})
	if err != nil {
		return err
	}
	s.leadership, s.renew = l, l.Renew

	life, stop := context.WithCancel(life)
	defer stop()
	g, life := errgroup.WithContext(life)
	g.Go(func() error { return s.lead(life, l, elected) })
	g.Go(func() error { return s.watchLag(life) })
	g.Go(func() error { return s.followTerm(life) })
	g.Go(func() error { return s.beMember(life) })
	g.Go(func() error { return s.watchMoves(life) })
	g.Go(func() error { return s.replaceStoreLeader(life) })
	g.Go(func() error {
		select {
		case <-s.store.Failed():
			return s.store.Err()
		case <-life.Done():
		case <-ctx.Done():
			s.handOver()
			stop()
		}
		return nil
	})
	return g.Wait()
}

// election is a term that was taken; ctx ends with it.
type election struct {
	ctx  context.Context
	term store.Term
}

// lead takes terms for as long as the process lives, and works under each.
func (s *server) lead(ctx context.Context, l *leader.Leadership, elected <-chan election) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.Run(ctx) })
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case e := <-elected:
				if err := s.work(e.ctx, e.term); err != nil && e.ctx.Err() == nil {
					s.log.Warn("the work of the leader ended; a new term is taken", "term", e.term.Term, "error", err)
					l.Renew()
				}
			}
		}
	})
	return g.Wait()
}
