package leader

import (
	"time"

	"kvnet/model"
	"kvnet/model/state"
)

// noteLost remembers when a node was lost.
func (d *Decider) noteLost(st *model.NodeStatus) {
	if st.State != model.NodeIncomplete {
		delete(d.lost, st.Hostname)
	} else if _, known := d.lost[st.Hostname]; !known {
		d.lost[st.Hostname] = time.Now()
	}
}

// lostGateways are the gateways that were lost so short a time ago that a router
// stays on them while no other gateway is complete.
func (d *Decider) lostGateways(snap state.Snapshot) (out []string) {
	for h, at := range d.lost {
		if n := snap.Node(h); n != nil && n.Type == model.NodeGateway && time.Since(at) < d.c.LostGrace {
			out = append(out, h)
		}
	}
	return out
}

// nextLost is the time until the grace of the next lost node is over.
func (d *Decider) nextLost() (wait time.Duration, any bool) {
	for _, at := range d.lost {
		if left := d.c.LostGrace - time.Since(at); !at.IsZero() && (!any || left < wait) {
			wait, any = left, true
		}
	}
	return max(wait, 0), any
}

// forgetLost has the routers decided again whose gateway was lost for too long.
func (d *Decider) forgetLost(snap state.Snapshot) {
	for h, at := range d.lost {
		if at.IsZero() || time.Since(at) < d.c.LostGrace {
			continue
		}
		d.lost[h] = time.Time{} // its grace is over for good
		for r := range snap.RoutersByGateway(h) {
			d.routers[r] = struct{}{}
		}
	}
}
