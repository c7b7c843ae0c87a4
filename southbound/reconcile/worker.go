package reconcile

import (
	"context"
	"errors"
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
	for {
		now := time.Now()
		t.mu.Lock()
		if t.session != s || t.blocked != "" {
			t.answered(t.gen)
			t.mu.Unlock()
			return nil
		}
		if t.staged && !t.outgrown() {
			t.skipped = true
			t.mu.Unlock()
			return nil
		}
		gen, first := t.gen, newHead(s)
		ops, msgs := t.build(now, first)
		if len(ops) == 0 {
			if t.staged {
				t.skipped = true
			} else {
				t.forgive(now)
				t.answered(gen)
			}
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		if err := t.send(ctx, s, first, ops, msgs); err != nil {
			return err
		}
	}
}

// send sends messages in bundles, the first of which may have begun, and takes in
// the answers. Refused owners are set
// aside; the caller builds the rest anew.
func (t *target) send(ctx context.Context, s Session, next *head, ops []op, msgs []openflow.Message) error {
	for len(ops) > 0 {
		n := min(len(ops), maxBundle)
		began := time.Now()
		err := next.finish(ctx, s, msgs[:n])
		now := time.Now()
		var refused *openflow.BundleError
		switch {
		case err == nil:
			t.e.metrics.bundle(now.Sub(began))
			if n < len(msgs) {
				next.send(msgs[n:]) // while the answer is taken in
			}
			t.mu.Lock()
			came, went := t.done(ops[:n])
			t.mu.Unlock()
			t.answer(came, went, now)
			t.scheduleFreed(now)
			ops, msgs = ops[n:], msgs[n:]
		case errors.As(err, &refused):
			t.mu.Lock()
			t.failed(ops)
			t.lastError = err.Error()
			progress := t.refusedBy(ops[:n], refused, now)
			t.mu.Unlock()
			if !progress {
				return err
			}
			return nil
		default:
			t.mu.Lock()
			t.failed(ops)
			t.mu.Unlock()
			return err
		}
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
