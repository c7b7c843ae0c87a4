package main

import (
	"kvnet/model"
	"kvnet/northbound/rest"
	"kvnet/southbound/flow"
	"kvnet/southbound/reconcile"
)

// inspector shows what the process does to REST.
type inspector struct{ s *server }

func (i inspector) Flows(switchID, owner string) (rest.FlowsReport, error) {
	r := rest.FlowsReport{Flows: []rest.FlowView{}, Waiting: []rest.WaitingView{}}
	l := i.s.leading.Load()
	if l == nil {
		return r, i.s.ledElsewhere()
	}
	f := reconcile.Filter{Owner: flow.Owner(owner)}
	if switchID != "" {
		d, err := model.ParseDPID(switchID)
		if err != nil {
			return r, err
		}
		f.Switch = d
	}
	for _, v := range l.engine.Rules(f) {
		r.Flows = append(r.Flows, rest.FlowView{Switch: v.Switch.String(), Owner: string(v.Owner), Rule: v.Rule, State: string(v.State), Reason: v.Reason})
	}
	for _, w := range l.engine.Waiting(f) {
		r.Waiting = append(r.Waiting, rest.WaitingView{Owner: string(w.Owner), For: w.For})
	}
	return r, nil
}

func (i inspector) Switches() []rest.SwitchView {
	known := map[model.DPID]reconcile.SwitchView{}
	if l := i.s.leading.Load(); l != nil {
		for _, v := range l.engine.Switches() {
			known[v.DPID] = v
		}
	}
	snap := i.s.db.Snapshot()
	out := []rest.SwitchView{}
	for sw := range snap.Switches() {
		v := rest.SwitchView{ID: sw.DPID.String(), Address: sw.Address, TLS: sw.TLS, Role: sw.Role, Generation: sw.Generation, Connected: sw.Connected, LastError: sw.LastError}
		if n := snap.NodeByBridge(sw.DPID); n != nil {
			v.Node = n.Hostname
		}
		k := known[sw.DPID]
		v.Flows, v.Groups = k.Rules, k.Groups
		switch {
		case k.Blocked != "":
			v.LastError = k.Blocked
		case v.LastError == "":
			v.LastError = k.LastError
		}
		out = append(out, v)
	}
	return out
}
