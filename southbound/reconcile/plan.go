package reconcile

import (
	"context"
	"slices"
	"strings"
	"time"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/southbound/flow"
)

// batch is what one plan has touched.
type batch struct {
	staged  map[*target]struct{} // their workers wait for the end of the plan
	targets map[*target]struct{}
	last    *target      // the last one that was touched
	cells   []*cell      // to be released once the adds are in
	groups  []*groupCell // likewise
	deletes bool         // something is claimed no longer
}

func newBatch() *batch {
	return &batch{staged: map[*target]struct{}{}, targets: map[*target]struct{}{}}
}

// stage keeps the worker of a target from sending a part of what the plan is
// about to change: a change is one bundle.
func (b *batch) stage(t *target) {
	if _, ok := b.staged[t]; ok {
		return
	}
	b.staged[t] = struct{}{}
	t.mu.Lock()
	t.staged = true
	t.mu.Unlock()
}

// unstage ends stage for all targets, once what is claimed is whole.
func (b *batch) unstage() {
	for t := range b.staged {
		t.mu.Lock()
		t.growth = 0
		if t.staged = false; t.skipped {
			t.skipped = false
			t.wake()
		}
		t.mu.Unlock()
	}
	clear(b.staged)
}

func (b *batch) touch(t *target) {
	if t != b.last {
		b.targets[t], b.last = struct{}{}, t
	}
}

// release lets the deletes of the batch be sent.
func (b *batch) release() {
	var at *target
	enter := func(t *target) {
		if t == at {
			return
		}
		if at != nil {
			at.mu.Unlock()
		}
		if at = t; t != nil {
			t.mu.Lock()
		}
	}
	for _, c := range b.cells {
		enter(c.t)
		c.released = true
	}
	for _, g := range b.groups {
		enter(g.t)
		g.released = true
	}
	enter(nil)
}

// send lets the touched switches be brought up to date: on one switch at once,
// over several first all adds, then all deletes. A switch that has not answered
// an earlier wave in time is not waited for.
func (e *Engine) send(ctx context.Context, b *batch) {
	b.unstage()
	var live []*target
	for t := range b.targets {
		t.mu.Lock()
		if t.session != nil && t.blocked == "" {
			live = append(live, t)
		}
		t.mu.Unlock()
	}
	if len(live) > 1 && b.deletes {
		e.wave(ctx, live)
	}
	b.release()
	for t := range b.targets {
		t.request()
	}
	if b.deletes {
		for t := range b.targets {
			e.forget(t.dpid)
		}
	}
}

// wave sends what the switches must gain and waits for the answers.
func (e *Engine) wave(ctx context.Context, live []*target) {
	timeout := time.NewTimer(e.cfg.WaveTimeout)
	defer timeout.Stop()
	type wait struct {
		t  *target
		ch <-chan struct{}
	}
	var waits []wait
	for _, t := range live {
		ch := t.request()
		t.mu.Lock()
		lagging := t.lagging
		t.mu.Unlock()
		if !lagging {
			waits = append(waits, wait{t, ch})
		}
	}
	for i, w := range waits {
		select {
		case <-w.ch:
		case <-ctx.Done():
			return
		case <-timeout.C:
			for _, w := range waits[i:] {
				select {
				case <-w.ch:
				default:
					w.t.mu.Lock()
					w.t.lagging = true
					w.t.mu.Unlock()
					e.log.Warn("switch does not answer in time, the others go on", "switch", w.t.dpid)
				}
			}
			e.metrics.waves.WithLabelValues("timeout").Inc()
			return
		}
	}
	e.metrics.waves.WithLabelValues("answered").Inc()
}

// handlerOf is the handler of an owner; nil if there is none.
func (e *Engine) handlerOf(o flow.Owner) handlers.Handler {
	name, _, _ := strings.Cut(string(o), "/")
	for _, h := range e.cfg.Handlers {
		if h.Name() == name {
			return h
		}
	}
	return nil
}

// beginFull starts a recompute of all owners, those that exist and those that
// have claims.
func (e *Engine) beginFull() {
	if len(e.queue) > 0 {
		return
	}
	all := map[flow.Owner]bool{}
	for _, h := range e.cfg.Handlers {
		for _, o := range h.Owners(e.snap) {
			all[o] = true
		}
	}
	for o := range e.owners {
		all[o] = true
	}
	e.queue = make([]flow.Owner, 0, len(all))
	for o := range all {
		e.queue = append(e.queue, o)
	}
	slices.Sort(e.queue)
}

// someOfFull computes a part of the full recompute, so that changes are never
// kept waiting for long.
func (e *Engine) someOfFull(ctx context.Context) {
	b := newBatch()
	until := time.Now().Add(2 * time.Millisecond)
	for len(e.queue) > 0 && time.Now().Before(until) {
		o := e.queue[0]
		e.queue = e.queue[1:]
		if h := e.handlerOf(o); h != nil && e.compute(h, o, b) {
			e.metrics.differences.Inc()
			e.log.Error("full recompute differs from the incremental one", "owner", o)
		}
	}
	e.send(ctx, b)
}

// forget removes the target of a switch that is not connected and on which nothing
// is wanted. Only the goroutine of Run makes claims, so none can come meanwhile.
func (e *Engine) forget(d model.DPID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.targets[d]
	if t == nil {
		return
	}
	t.mu.Lock()
	empty := t.session == nil && t.claims == 0
	t.mu.Unlock()
	if empty {
		delete(e.targets, d)
		if t.stop != nil {
			t.stop()
		}
	}
}

// prune forgets all targets that stand for nothing. The state may know of the end
// of a connection before the target does, so forgetting then may come too early.
func (e *Engine) prune() {
	for _, t := range e.sorted() {
		e.forget(t.dpid)
	}
}
