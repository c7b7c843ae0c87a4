package bench

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/openflow"
	"kvnet/southbound/reconcile"
)

// agreeable is a session of a switch that accepts everything and keeps nothing,
// and tells what was sent when.
type agreeable struct {
	dpid model.DPID
	sent func(messages int, at time.Time) // when a bundle is handed over
}

func (a *agreeable) DPID() model.DPID { return a.dpid }

func (a *agreeable) Bundle(_ context.Context, m []openflow.Message) error {
	a.sent(len(m), time.Now())
	return nil
}

func (*agreeable) Send(context.Context, openflow.Message) error { return nil }

func (*agreeable) Flows(context.Context, openflow.FlowQuery) ([]openflow.FlowEntry, error) {
	return nil, nil
}

func (*agreeable) Groups(context.Context) ([]openflow.GroupEntry, error) { return nil, nil }

func (*agreeable) Close(string) {}

// startEngine runs an engine without audits until stop is called.
func startEngine(db *state.DB, hs []handlers.Handler) (e *reconcile.Engine, stop func()) {
	e = reconcile.New(reconcile.Config{DB: db, Handlers: hs, Logger: quiet(),
		AuditInterval: time.Hour, FullAuditInterval: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) }) // it ends with ctx and has no other error
	return e, func() { cancel(); running.Wait() }
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
