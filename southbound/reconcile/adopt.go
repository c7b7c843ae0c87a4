package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// Adoption says which rules of a former controller are taken over: those whose
// cookie is equal to Cookie under Mask.
type Adoption struct {
	Cookie, Mask uint64
	Switch       model.DPID // 0: all that are connected
	DryRun       bool       // only count
}

// AdoptView says what an adoption does, or has done, on one switch.
type AdoptView struct {
	DPID     model.DPID
	Matched  int // rules of the former controller
	Replaced int // of them, those in whose place kvnet has a rule of its own
	Removed  int // of them, the others
	Groups   int // of the former controller's that no other rule uses
	Added    int // rules of kvnet's that replace none
	Err      error
}

// ErrAdoption is wrapped by the errors of an adoption that can't be meant.
var ErrAdoption = errors.New("the adoption is refused")

// Validate tells whether a is safe: it must not match rules of kvnet's own.
func (a Adoption) Validate() error {
	switch {
	case a.Mask == 0:
		return fmt.Errorf("%w: the mask 0 matches the rules of everybody; name the bits that only the former controller's cookies have", ErrAdoption)
	case a.Cookie&^a.Mask != 0:
		return fmt.Errorf("%w: the cookie 0x%016x has bits outside of the mask 0x%016x", ErrAdoption, a.Cookie, a.Mask)
	case (a.Cookie^flow.CookieMark)&a.Mask&flow.CookieMask == 0:
		return fmt.Errorf("%w: 0x%016x/0x%016x matches cookies with kvnet's own mark 0x6b in the upper 8 bits", ErrAdoption, a.Cookie, a.Mask)
	}
	return nil
}

func (a Adoption) matches(cookie uint64) bool { return cookie&a.Mask == a.Cookie }

// takeover is an adoption that one switch's worker is asked for.
type takeover struct {
	Adoption
	answer chan AdoptView // with room for one
}

// adoptTimeout bounds how long an adoption waits for kvnet's own rules to be
// whole: longer than deletes are held.
const adoptTimeout = 25 * time.Second

var (
	errNotConnected = errors.New("the switch is not connected")
	errStopped      = errors.New("this server leads no longer")
	errIncomplete   = errors.New("kvnet's own rules are not complete yet: ports or bridges of the node are still awaited; nothing is changed, try again")
)

// Adopt takes over what a former controller has on the connected switches: its
// rules and the groups that no other rule uses. On one switch that is one bundle,
// kvnet's own rules first, so that no packet finds neither the old rules nor the
// new ones. The views come in the order of the switches' ids.
func (e *Engine) Adopt(ctx context.Context, a Adoption) ([]AdoptView, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	var targets []*target
	for _, t := range e.sorted() {
		t.mu.Lock()
		up := t.session != nil
		t.mu.Unlock()
		if up && (a.Switch == 0 || a.Switch == t.dpid) {
			targets = append(targets, t)
		}
	}
	if a.Switch != 0 && len(targets) == 0 {
		return []AdoptView{{DPID: a.Switch, Err: errNotConnected}}, nil
	}
	views := make([]AdoptView, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() { views[i] = t.adopt(ctx, a) })
	}
	wg.Wait()
	return views, nil
}

// adopt has the worker do it, again and again while kvnet's own rules are not
// complete.
func (t *target) adopt(ctx context.Context, a Adoption) AdoptView {
	v := AdoptView{DPID: t.dpid}
	for {
		x := &takeover{a, make(chan AdoptView, 1)}
		t.mu.Lock()
		t.takeovers = append(t.takeovers, x)
		t.mu.Unlock()
		t.wake()
		select {
		case v = <-x.answer:
		case <-ctx.Done():
			switch {
			case !t.withdraw(x):
				v = <-x.answer // it is being carried out, within the limits of the worker
			case v.Err == nil:
				v.Err = fmt.Errorf("the switch has not been asked in time, nothing is changed: %w", ctx.Err())
			}
		}
		if !errors.Is(v.Err, errIncomplete) || ctx.Err() != nil {
			return v
		}
		select {
		case <-ctx.Done():
			return v
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// withdraw takes a takeover back that the worker has not begun.
func (t *target) withdraw(x *takeover) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, y := range t.takeovers {
		if y == x {
			t.takeovers = append(t.takeovers[:i], t.takeovers[i+1:]...)
			return true
		}
	}
	return false
}

// refuseTakeovers answers all that were asked for; called with t.mu held.
func (t *target) refuseTakeovers(err error) {
	for _, x := range t.takeovers {
		x.answer <- AdoptView{DPID: t.dpid, Err: err}
	}
	t.takeovers = nil
}

// takeOver carries out what was asked for. An error means that the session is of
// no use any more.
func (t *target) takeOver(ctx context.Context, s Session) error {
	for {
		t.mu.Lock()
		if t.session != s || len(t.takeovers) == 0 {
			t.mu.Unlock()
			return nil
		}
		if t.staged {
			t.skipped = true // it goes on at the end of the plan
			t.mu.Unlock()
			return nil
		}
		x := t.takeovers[0]
		t.takeovers = t.takeovers[1:]
		t.mu.Unlock()
		v, err := t.carryOut(ctx, s, x.Adoption)
		if err != nil && v.Err == nil {
			v.Err = err
		}
		x.answer <- v
		if err == nil && v.Err == nil && !x.DryRun {
			err = t.flush(ctx, s)
		}
		if err != nil {
			return err
		}
	}
}

// carryOut does one adoption.
func (t *target) carryOut(ctx context.Context, s Session, a Adoption) (AdoptView, error) {
	failed := AdoptView{DPID: t.dpid}
	flows, groups, err := t.read(ctx, s)
	if err != nil {
		return failed, err
	}
	now := time.Now()
	t.mu.Lock()
	if t.session != s {
		t.mu.Unlock()
		failed.Err = errNotConnected
		return failed, nil
	}
	if v, _ := t.survey(flows, groups, a); a.DryRun || v.Matched == 0 {
		t.mu.Unlock()
		return v, nil
	}
	if t.staged || t.holdDeletes(now) {
		t.mu.Unlock()
		failed.Err = errIncomplete
		return failed, nil
	}
	young := t.begin(flows, groups, now)
	v, unused := t.survey(flows, groups, a)
	out := &outgoing{} // without a session: its order is not yet the one to be sent
	t.build(now, out)
	for o, x := range t.aside {
		v.Err = fmt.Errorf("rules of %s can't be installed, nothing is changed: %s", o, x.reason)
		t.failed(out.ops)
		t.mu.Unlock()
		return v, nil
	}
	t.mu.Unlock()
	t.announceYoung(young, now)

	ops, msgs := insertTakeover(out.ops, out.msgs, a, unused)
	if v.Err, err = t.sendTakeover(ctx, s, ops, msgs); v.Err != nil || err != nil {
		return v, err
	}
	rest := make([]openflow.FlowEntry, 0, len(flows)-v.Matched)
	for _, f := range flows {
		if !a.matches(f.Cookie) {
			rest = append(rest, f)
		}
	}
	t.mu.Lock()
	if t.session == s {
		t.checkOriginal(rest)
		if t.blocked != "" {
			v.Err = fmt.Errorf("adopted, but %s: those that are left have other cookies", t.blocked)
		}
	}
	t.mu.Unlock()
	t.e.log.Info("rules of a former controller are taken over", "switch", t.dpid,
		"cookie", fmt.Sprintf("0x%016x/0x%016x", a.Cookie, a.Mask),
		"replaced", v.Replaced, "removed", v.Removed, "groups", v.Groups, "added", v.Added)
	return v, nil
}

// insertTakeover puts the deletion of the former controller's rules and groups
// behind all that concerns rules of kvnet's own.
func insertTakeover(ops []op, msgs []openflow.Message, a Adoption, groups []uint32) ([]op, []openflow.Message) {
	at := len(ops)
	for i, o := range ops {
		if o.kind == opGroupDelete || o.kind == opOrphanGroup || o.kind == opAnnounce {
			at = i
			break
		}
	}
	outOps := append(make([]op, 0, len(ops)+1+len(groups)), ops[:at]...)
	outMsgs := append(make([]openflow.Message, 0, len(msgs)+1+len(groups)), msgs[:at]...)
	outOps = append(outOps, op{kind: opForeign})
	outMsgs = append(outMsgs, openflow.DeleteFlows(allFlows.Table, a.Cookie, a.Mask))
	for _, id := range groups {
		outOps = append(outOps, op{kind: opForeignGroup})
		outMsgs = append(outMsgs, openflow.DeleteGroup(id))
	}
	return append(outOps, ops[at:]...), append(outMsgs, msgs[at:]...)
}

// sendTakeover sends the messages in order, in one bundle if they fit. A refusal
// ends it: better the former controller's rules than a part of kvnet's.
func (t *target) sendTakeover(ctx context.Context, s Session, ops []op, msgs []openflow.Message) (refused, lost error) {
	for sent := 0; len(ops) > 0; {
		n := min(len(ops), maxBundle)
		began := time.Now()
		err := sendBundle(ctx, s, msgs[:n])
		now := time.Now()
		t.mu.Lock()
		if err != nil {
			t.failed(ops)
			t.lastError = err.Error()
			t.mu.Unlock()
			var be *openflow.BundleError
			if !errors.As(err, &be) {
				return nil, fmt.Errorf("take over switch %s: %w", t.dpid, err)
			}
			return refusal(ops[:n], be, sent), nil
		}
		t.e.metrics.bundle(now.Sub(began))
		came, went := t.done(ops[:n])
		t.mu.Unlock()
		t.answer(came, went, now)
		ops, msgs, sent = ops[n:], msgs[n:], sent+n
	}
	return nil, nil
}

// refusal says which owner's rules the switch refuses.
func refusal(ops []op, be *openflow.BundleError, sent int) error {
	what := "nothing is changed"
	if sent > 0 {
		what = "only some of kvnet's rules are in, and none is deleted"
	}
	for _, r := range be.Refused {
		if r.Index >= 0 && r.Index < len(ops) && ops[r.Index].owner != "" {
			return fmt.Errorf("the switch refuses rules of %s, %s: %s", ops[r.Index].owner, what, r.Text)
		}
	}
	return fmt.Errorf("the switch refuses it, %s: %w", what, be)
}
