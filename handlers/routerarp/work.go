package routerarp

import (
	"container/heap"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"kvnet/handlers"
	"kvnet/handlers/arp"
	"kvnet/model"
	"kvnet/model/state"
)

// work is one run of a Prober. All of it belongs to Run's goroutine, but for the
// goroutines that store results, which speak through results only.
type work struct {
	ctx    context.Context
	config ProberConfig
	log    *slog.Logger

	begun  bool
	snap   state.Snapshot
	probes map[string]*probe // by router
	// byPeer finds the probes that a packet may concern.
	byPeer map[peerKey]map[*probe]struct{}
	due    schedule
	timer  *time.Timer

	results chan result
	slots   chan struct{}
	storing sync.WaitGroup
}

type peerKey struct {
	sw model.DPID
	ip netip.Addr
}

// result says how the storing of a MAC went.
type result struct {
	probe *probe
	mac   model.MAC
	err   error
}

func newWork(ctx context.Context, c ProberConfig) *work {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &work{
		ctx: ctx, config: c, log: c.Logger,
		probes: map[string]*probe{}, byPeer: map[peerKey]map[*probe]struct{}{}, timer: t,
		results: make(chan result), slots: make(chan struct{}, learnersAtOnce),
	}
}

// close waits for the goroutines; ctx has ended.
func (w *work) close() {
	w.timer.Stop()
	w.storing.Wait()
}

// begin looks at all routers.
func (w *work) begin(db state.Snapshot) {
	w.begun, w.snap = true, db
	for r := range db.Routers() {
		w.refresh(r.Name)
	}
}

// follow looks at the routers that changes concern.
func (w *work) follow(db state.Snapshot, changes []model.Change) {
	w.snap = db
	for _, c := range changes {
		switch c.Kind {
		case model.KindRouter, model.KindRouterStatus:
			w.refresh(c.Key)
		case model.KindNetwork:
			for r := range db.RoutersByExternal(c.Key) {
				w.refresh(r.Name)
			}
		case model.KindNode:
			w.refreshGateway(c.Key)
		case model.KindNodeStatus:
			if handlers.ExternalMACChanged(c) {
				w.refreshGateway(c.Key)
			}
		case model.KindSwitchPort:
			for _, p := range model.Versions[*model.SwitchPort](c) {
				w.refreshPort(p)
			}
		}
	}
}

func (w *work) refreshGateway(hostname string) {
	for router := range w.snap.RoutersByGateway(hostname) {
		w.refresh(router)
	}
}

// refreshPort looks at the routers of a gateway if p is its way out.
func (w *work) refreshPort(p *model.SwitchPort) {
	gw := w.snap.NodeByIntegration(model.DeviceID(p.DPID.String()))
	if gw != nil && p.Name == gw.ExternalPatchPort() {
		w.refreshGateway(gw.Hostname)
	}
}

// refresh brings the probe of a router in line with the snapshot.
func (w *work) refresh(router string) {
	p := w.probes[router]
	t, known, ready, ok := look(w.snap, router)
	if p != nil && (!ok || p.target != t) {
		w.forget(p)
		p = nil
	}
	if !ok {
		return
	}
	if p == nil {
		p = &probe{router: router, target: t, index: -1}
		w.probes[router] = p
		k := peerKey{t.sw, t.ip}
		if w.byPeer[k] == nil {
			w.byPeer[k] = map[*probe]struct{}{}
		}
		w.byPeer[k][p] = struct{}{}
	} else if p.known == known && p.ready == ready {
		return
	}
	if p.known != known {
		p.verifyUntil = time.Time{}
	}
	p.known, p.ready, p.asked = known, ready, false
	if known.IsZero() && ready {
		w.plan(p, time.Now().Add(firstRequest))
	} else {
		w.plan(p, time.Time{})
	}
}

// forget ends a probe.
func (w *work) forget(p *probe) {
	w.plan(p, time.Time{})
	delete(w.probes, p.router)
	k := peerKey{p.target.sw, p.target.ip}
	delete(w.byPeer[k], p)
	if len(w.byPeer[k]) == 0 {
		delete(w.byPeer, k)
	}
}

// plan sets the time of p's next request; zero: none.
func (w *work) plan(p *probe, at time.Time) {
	if p.index >= 0 {
		heap.Remove(&w.due, p.index)
	}
	p.due = at
	if !at.IsZero() {
		heap.Push(&w.due, p)
	}
}

// setTimer lets the timer fire at the next planned request.
func (w *work) setTimer() {
	if len(w.due) == 0 {
		w.timer.Stop()
		return
	}
	w.timer.Reset(time.Until(w.due[0].due))
}

// askDue sends the requests whose time has come.
func (w *work) askDue() {
	now := time.Now()
	for len(w.due) > 0 && !w.due[0].due.After(now) {
		p := w.due[0]
		if p.known.IsZero() {
			w.ask(p)
		} else {
			w.verify(p)
		}
	}
}

// ask sends a request for an unknown MAC and plans the next one.
func (w *work) ask(p *probe) {
	pause := secondRequest
	if p.asked {
		pause = laterRequests
	}
	w.send(p)
	p.asked = true
	w.plan(p, p.lastRequest.Add(pause))
}

// verify sends a request to make sure of a MAC that seems to have changed, or
// plans it for when the last request is long enough ago.
func (w *work) verify(p *probe) {
	now := time.Now()
	if again := p.lastRequest.Add(verifyPause); again.After(now) {
		w.plan(p, again)
		return
	}
	w.plan(p, time.Time{})
	if w.send(p) {
		p.verifyUntil = now.Add(verifyWindow)
	}
}

// send sends a request; false if that failed.
func (w *work) send(p *probe) bool {
	p.lastRequest = time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, sendTimeout)
	defer cancel()
	frame := arp.Tagged(arp.RequestFrame(p.target.mac, p.target.snat, p.target.ip), p.target.vlan)
	if err := w.config.Sender.PacketOut(ctx, p.target.sw, p.target.port, frame); err != nil {
		if w.ctx.Err() == nil {
			w.log.Warn("ARP request for a peer router not sent", "router", p.router, "peer", p.target.ip, "switch", p.target.sw, "error", err)
		}
		return false
	}
	return true
}
