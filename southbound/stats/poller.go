package stats

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvnet/internal/pause"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/openflow"
)

// Session reads rules of a switch. *openflow.Session implements it.
type Session interface {
	Flows(ctx context.Context, q openflow.FlowQuery) ([]openflow.FlowEntry, error)
}

// Config says what a Poller works with. Zero durations and numbers mean the
// defaults.
type Config struct {
	DB     *state.DB
	Gauges *Gauges
	// Session returns the session with a switch; ok is false if there is none.
	Session func(d model.DPID) (s Session, ok bool)
	Logger  *slog.Logger
	// Interval is the time between two reads of a switch (10 s). The reads of
	// all switches are spread over it.
	Interval time.Duration
	// Timeout bounds one read (5 s), Parallel the number of reads at a time (4).
	Timeout  time.Duration
	Parallel int
}

// Poller reads the counters of all switches that gauges need, again and again.
type Poller struct {
	c Config

	mu      sync.Mutex
	failing map[model.DPID]bool // the last read failed, and that was logged
}

// NewPoller makes a Poller.
func NewPoller(c Config) *Poller {
	c.Interval = cmp.Or(c.Interval, 10*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Parallel = cmp.Or(c.Parallel, 4)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Poller{c: c, failing: map[model.DPID]bool{}}
}

// Run reads until ctx ends. Then there are no gauges: whoever leads next has them.
func (p *Poller) Run(ctx context.Context) error {
	defer p.c.Gauges.retain(func(model.DPID) bool { return false })
	tick := time.NewTicker(p.c.Interval)
	defer tick.Stop()
	for {
		p.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round reads each switch once, spread over the interval.
func (p *Poller) round(ctx context.Context) {
	list := switches(p.c.DB.Snapshot())
	p.c.Gauges.retain(func(d model.DPID) bool { return slices.Contains(list, d) })
	var g errgroup.Group
	g.SetLimit(p.c.Parallel)
	for i, d := range list {
		if i > 0 && !pause.For(ctx, p.c.Interval/time.Duration(len(list))) {
			break
		}
		g.Go(func() error {
			p.read(ctx, d)
			return nil
		})
	}
	_ = g.Wait() // reads have no errors
}

// read reads one switch. Of a switch that can't be read there are no gauges:
// values of the past would look like those of a quiet network.
func (p *Poller) read(ctx context.Context, d model.DPID) {
	s, ok := p.c.Session(d)
	if !ok {
		p.c.Gauges.retain(func(x model.DPID) bool { return x != d })
		return
	}
	limited, cancel := context.WithTimeout(ctx, p.c.Timeout)
	defer cancel()
	entries, err := s.Flows(limited, query)
	if ctx.Err() != nil {
		return // the end of Run, no fault of the switch
	}
	if err != nil {
		p.c.Gauges.retain(func(x model.DPID) bool { return x != d })
		p.c.Gauges.reads.WithLabelValues("error").Inc()
	} else {
		p.c.Gauges.set(d, readingOf(entries))
		p.c.Gauges.reads.WithLabelValues("ok").Inc()
	}
	p.mu.Lock()
	news := p.failing[d] != (err != nil)
	p.failing[d] = err != nil
	p.mu.Unlock()
	if news && err != nil {
		p.c.Logger.Warn("the counters of a gateway's rules can't be read", "switch", d, "error", err)
	}
}
