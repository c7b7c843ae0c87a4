package leader

import (
	"time"

	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
)

// loss is when a node became INCOMPLETE, and how many of the graces are over:
// CutGrace, then LostGrace.
type loss struct {
	at     time.Time
	graces int
}

// end is when the next grace is over; ok is false if none is left.
func (d *Decider) end(l loss) (at time.Time, ok bool) {
	graces := []time.Duration{d.c.CutGrace, d.c.LostGrace}
	if l.graces >= len(graces) {
		return time.Time{}, false
	}
	return l.at.Add(graces[l.graces]), true
}

// noteLost remembers when a node was lost.
func (d *Decider) noteLost(st *model.NodeStatus) {
	if st.State != model.NodeIncomplete {
		delete(d.lost, st.Hostname)
	} else if _, known := d.lost[st.Hostname]; !known {
		d.lost[st.Hostname] = loss{at: time.Now()}
	}
}

// stillLost has the routers of a lost node decided again, because the last of its
// switches may have gone.
func (d *Decider) stillLost(snap state.Snapshot, hostname string) {
	if l, lost := d.lost[hostname]; lost && l.graces == 0 {
		d.markRouters(snap, hostname)
	}
}

// lostGateways are the gateways that were lost so short a time ago that routers may
// stay on them.
func (d *Decider) lostGateways(snap state.Snapshot) (out decide.Gateways) {
	for h, l := range d.lost {
		n := snap.Node(h)
		if n == nil || n.Type != model.NodeGateway {
			continue
		}
		if time.Since(l.at) < d.c.CutGrace && decide.AnyConnected(snap, n, d.graceOver) {
			out.Cut = append(out.Cut, h)
		}
		if time.Since(l.at) < d.c.LostGrace {
			out.Lost = append(out.Lost, h)
		}
	}
	return out
}

// nextLost is the time until the next grace of a lost node is over.
func (d *Decider) nextLost() (wait time.Duration, any bool) {
	for _, l := range d.lost {
		if end, ok := d.end(l); ok && (!any || time.Until(end) < wait) {
			wait, any = time.Until(end), true
		}
	}
	return max(wait, 0), any
}

// forgetLost has the routers decided again of whose gateway a grace is over.
func (d *Decider) forgetLost(snap state.Snapshot) {
	for h, l := range d.lost {
		if end, ok := d.end(l); !ok || time.Until(end) > 0 {
			continue
		}
		l.graces++
		d.lost[h] = l
		d.markRouters(snap, h)
	}
}

func (d *Decider) markRouters(snap state.Snapshot, hostname string) {
	for r := range snap.RoutersByGateway(hostname) {
		d.routers[r] = struct{}{}
	}
}
