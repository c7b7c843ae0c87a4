package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kvnet/southbound/openflow"
)

// ioTimeout bounds one exchange with a switch. A switch that does not answer for
// so long loses its connection and is read anew when it comes back. All of a
// worker's exchanges together may take longer: much is to be sent, or one refusal
// follows another.
var ioTimeout = 30 * time.Second

func readFlows(ctx context.Context, s Session, q openflow.FlowQuery) ([]openflow.FlowEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return s.Flows(ctx, q)
}

func readGroups(ctx context.Context, s Session) ([]openflow.GroupEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return s.Groups(ctx)
}

func sendBundle(ctx context.Context, s Session, msgs []openflow.Message) error {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return s.Bundle(ctx, msgs)
}

// run is the worker of a switch: the only goroutine that writes to it.
func (t *target) run(ctx context.Context) {
	audit := spread(t.e.cfg.AuditInterval)
	full := spread(t.e.cfg.FullAuditInterval)
	alarm := time.NewTimer(time.Hour)
	defer audit.Stop()
	defer full.Stop()
	defer alarm.Stop()
	for {
		wantFull, wantAudit := false, false
		select {
		case <-ctx.Done():
			t.mu.Lock()
			t.answered(t.gen)
			t.refuseTakeovers(errStopped)
			t.mu.Unlock()
			return
		case <-t.signal:
		case <-alarm.C:
		case <-audit.C:
			wantAudit = true
			audit.Reset(jitter(t.e.cfg.AuditInterval))
		case <-full.C:
			wantFull = true
			full.Reset(jitter(t.e.cfg.FullAuditInterval))
		}
		next := t.work(ctx, wantAudit, wantFull)
		if next.IsZero() {
			next = time.Now().Add(time.Hour)
		}
		alarm.Reset(max(time.Until(next), time.Millisecond))
	}
}

// jitter spreads the audits of many switches.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1))
}

// work does what is to be done now and returns when to look again.
func (t *target) work(ctx context.Context, wantAudit, wantFull bool) (next time.Time) {
	t.mu.Lock()
	s, synced := t.session, t.synced
	t.mu.Unlock()
	if s == nil {
		t.mu.Lock()
		t.answered(t.gen)
		t.refuseTakeovers(errNotConnected)
		t.mu.Unlock()
		return time.Time{}
	}
	if !t.e.planned.Load() {
		// Nothing is known of what is wanted before the first plan.
		return time.Time{}
	}
	var err error
	switch {
	case !synced:
		err = t.sync(ctx, s)
	case wantFull || wantAudit:
		err = t.audit(ctx, s, wantFull)
	default:
		err = t.heal(ctx, s)
	}
	t.scheduleFreed(time.Now())
	if err == nil {
		err = t.flush(ctx, s)
		t.scheduleFreed(time.Now())
	}
	if err == nil {
		err = t.takeOver(ctx, s)
		t.scheduleFreed(time.Now())
	}
	if err != nil {
		t.lost(s, err)
		return time.Time{}
	}
	return t.announceDue(ctx, s)
}

// lost gives up a session after an error: what the switch holds is not known any
// more, so it is read again.
func (t *target) lost(s Session, err error) {
	t.mu.Lock()
	mine := t.session == s
	if mine {
		t.lastError = err.Error()
		t.answered(t.gen)
	}
	t.mu.Unlock()
	if mine && !errors.Is(err, context.Canceled) {
		s.Close(err.Error())
	}
}

// flush sends what differs until nothing is left that may be sent.
func (t *target) flush(ctx context.Context, s Session) error {
	out := &outgoing{s: s}
	for {
		now := time.Now()
		t.mu.Lock()
		if t.session != s || t.blocked != "" {
			t.failed(out.ops)
			t.answered(t.gen)
			t.mu.Unlock()
			out.drop()
			return nil
		}
		if t.staged {
			much := t.gather(now, out)
			t.mu.Unlock()
			if !much {
				return nil
			}
			if !out.full() {
				out.begin()
				if err := t.untilWoken(ctx, out); err != nil {
					return err
				}
				continue
			}
		} else {
			gen := t.gen
			t.build(now, out)
			if len(out.ops) == 0 {
				t.forgive(now)
				t.answered(gen)
				t.mu.Unlock()
				return nil
			}
			t.mu.Unlock()
		}
		if err := t.send(ctx, out); err != nil {
			return err
		}
	}
}

// untilWoken waits for more of the plan, or its end. The plan does not wait for
// this worker.
func (t *target) untilWoken(ctx context.Context, out *outgoing) error {
	select {
	case <-t.signal:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		t.failed(out.ops)
		t.mu.Unlock()
		out.drop()
		return fmt.Errorf("wait for the end of a plan: %w", ctx.Err())
	}
}

// send sends the bundles of out and takes in the answers. What is left in out
// afterwards belongs to a bundle that has begun. Refused owners are set aside; the
// caller builds the rest anew.
func (t *target) send(ctx context.Context, out *outgoing) error {
	for whole := len(out.ops); whole > 0; {
		first := out.split()
		whole -= len(first.ops)
		began := time.Now()
		err := t.commit(ctx, first, out)
		now := time.Now()
		if err == nil {
			t.e.metrics.bundle(now.Sub(began))
			t.mu.Lock()
			came, went := t.done(first.ops)
			t.mu.Unlock()
			t.answer(came, went, now)
			t.scheduleFreed(now)
			continue
		}
		out.drop()
		t.mu.Lock()
		t.failed(first.ops)
		t.failed(out.ops)
		out.ops, out.msgs = nil, nil
		var refused *openflow.BundleError
		progress := false
		if errors.As(err, &refused) {
			t.lastError = err.Error()
			progress = t.refusedBy(first.ops, refused, now)
		}
		t.mu.Unlock()
		if progress {
			return nil
		}
		return err
	}
	return nil
}

// announceDue sends the announcements that are due and returns when to look
// again.
func (t *target) announceDue(ctx context.Context, s Session) (next time.Time) {
	now := time.Now()
	t.mu.Lock()
	msgs := t.dueAnnouncements(now)
	earlier := func(x time.Time) {
		if !x.IsZero() && (next.IsZero() || x.Before(next)) {
			next = x
		}
	}
	for _, sc := range t.sched {
		earlier(sc.at)
	}
	if len(t.aside) > 0 {
		earlier(t.nextRetry(now))
	}
	if t.dirty.n > 0 || len(t.dirtyGroups) > 0 || len(t.orphans) > 0 || len(t.orphanGrp) > 0 || len(t.strays) > 0 {
		// Deletes are held: look again when the holds end.
		for _, end := range []time.Time{t.holdUntil(t.e.cfg.DeleteHold), t.upSince.Add(t.e.cfg.AssembleHold)} {
			if end.After(now) {
				earlier(end)
			}
		}
	}
	t.mu.Unlock()
	for _, m := range msgs {
		if err := s.Send(ctx, m); err != nil {
			t.e.log.Warn("announcement not sent", "switch", t.dpid, "error", err)
			break
		}
	}
	return next
}
