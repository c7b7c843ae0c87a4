package main

import (
	"context"
	"errors"
	"fmt"

	"kvnet/northbound/rest"
	"kvnet/southbound/reconcile"
)

// adopter takes over switches for a client of REST.
type adopter struct{ s *server }

func (a adopter) Adopt(ctx context.Context, r rest.AdoptRequest) (out rest.AdoptReport, err error) {
	adoption := reconcile.Adoption{Cookie: r.Cookie, Mask: r.Mask, Switch: r.Switch, DryRun: r.DryRun}
	if err := adoption.Validate(); err != nil {
		return out, rest.AdoptRefusal(err.Error())
	}
	l := a.s.leading.Load()
	if l == nil {
		return out, a.s.notLeading()
	}
	views, err := l.engine.Adopt(ctx, adoption)
	if errors.Is(err, reconcile.ErrAdoption) {
		return out, rest.AdoptRefusal(err.Error())
	}
	if err != nil {
		return out, fmt.Errorf("adopt rules of a former controller: %w", err)
	}
	for _, v := range views {
		x := rest.AdoptView{ID: v.DPID.String(), Matched: v.Matched, Replaced: v.Replaced, Removed: v.Removed, Groups: v.Groups, Added: v.Added}
		if v.Err != nil {
			x.Error = v.Err.Error()
		}
		out.Switches = append(out.Switches, x)
	}
	for _, w := range l.engine.Waiting(reconcile.Filter{Switch: r.Switch}) {
		out.Waiting = append(out.Waiting, rest.WaitingView{Owner: string(w.Owner), For: w.For})
	}
	return out, nil
}
