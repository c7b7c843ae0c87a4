package routerarp

import (
	"context"
	"time"

	"kvnet/handlers/arp"
	"kvnet/model"
)

// judge looks at an ARP packet. Only an answer that was asked for counts, so that
// nobody takes the upstream router's place by speaking unasked (row A-2 of
// docs/deviations.md); what is said unasked makes the prober ask (row A-4).
func (w *work) judge(pk packet) {
	mac := pk.arp.SenderMAC
	if mac.IsZero() || mac[0]&1 != 0 {
		return
	}
	now := time.Now()
	for p := range w.byPeer[peerKey{pk.sw, pk.arp.SenderIP}] {
		port := w.snap.SwitchPort(pk.sw, p.target.port)
		if p.learning || port == nil || port.Number != pk.inPort || pk.arp.VLAN != p.target.vlan {
			continue
		}
		if pk.arp.Op == arp.Reply && pk.arp.TargetIP == p.target.snat {
			w.answer(p, mac, now)
		} else if pk.arp.Gratuitous() {
			w.hint(p, mac, now)
		}
	}
}

// answer takes in a reply to the router's address.
func (w *work) answer(p *probe, mac model.MAC, now time.Time) {
	switch {
	case p.known.IsZero() && p.asked:
		w.learn(p, mac)
	case p.verifying(now):
		p.verifyUntil = time.Time{}
		if mac != p.known {
			w.learn(p, mac)
		}
	default:
		w.hint(p, mac, now)
	}
}

// hint takes in what nobody asked for: the upstream router may have another MAC.
func (w *work) hint(p *probe, mac model.MAC, now time.Time) {
	switch {
	case mac == p.known || p.verifying(now):
	case !p.known.IsZero():
		w.verify(p)
	case p.ready && now.Sub(p.lastRequest) >= verifyPause:
		// The upstream router has just come up: don't wait for the next minute.
		w.ask(p)
	}
}

// learn stores the MAC beside the loop.
func (w *work) learn(p *probe, mac model.MAC) {
	p.learning = true
	router, ip := p.router, p.target.ip
	w.storing.Go(func() {
		select {
		case w.slots <- struct{}{}:
		case <-w.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(w.ctx, learnTimeout)
		err := w.config.Learner.Learned(ctx, router, ip, mac)
		cancel()
		<-w.slots
		select {
		case w.results <- result{p, mac, err}:
		case <-w.ctx.Done():
		}
	})
}

// learned takes in how the storing went. If it went well, the state says so.
func (w *work) learned(r result) {
	p := r.probe
	p.learning = false
	if r.err == nil {
		w.log.Info("MAC of a peer router learned", "router", p.router, "peer", p.target.ip, "mac", r.mac)
		return
	}
	w.log.Warn("MAC of a peer router not stored", "router", p.router, "peer", p.target.ip, "mac", r.mac, "error", r.err)
	if w.probes[p.router] == p && p.ready {
		w.plan(p, time.Now().Add(learnAgain))
	}
}
