package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"kvnet/model"
	"kvnet/model/state"
)

// Elect chooses the gateway of a router among the hostnames of gateways that are
// able to serve. The present one stays while it is among them; otherwise the one
// with the highest rendezvous hash is chosen, so that every server chooses alike
// and adding a gateway moves nothing by itself. It returns "" if there is none.
func Elect(router, present string, able []string) string {
	best, bestScore := "", uint64(0)
	for _, h := range able {
		if h == present {
			return present
		}
		if s := score(router, h); best == "" || s > bestScore || s == bestScore && h < best {
			best, bestScore = h, s
		}
	}
	return best
}

// score is the rendezvous weight of a router on a gateway. The length prefix
// keeps ("ab","c") and ("a","bc") apart.
func score(router, hostname string) uint64 {
	b := binary.AppendUvarint(nil, uint64(len(router)))
	b = append(b, router...)
	b = append(b, hostname...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:8])
}

// CompleteGateways lists the hostnames of the gateways in state COMPLETE.
func CompleteGateways(db state.Snapshot) []string {
	var out []string
	for n := range db.Nodes() {
		if n.Type == model.NodeGateway && db.NodeState(n.Hostname) == model.NodeComplete {
			out = append(out, n.Hostname)
		}
	}
	return out
}

// Gateways are the nodes that routers may be on.
type Gateways struct {
	// Able are the complete gateways.
	Able []string
	// Cut are those that were complete until a moment ago, and of which one switch
	// at least is still connected: they live, as far as is known, and forward. A
	// router stays there, because moving it costs packets, and one that lives but
	// can't be told so would go on serving it.
	Cut []string
	// Lost are those that were complete until a moment ago. While no gateway is
	// able, a router stays on one of them: its rules do no harm there, and a
	// control connection that comes back at once has cost no packet.
	Lost []string
}

// elect chooses the gateway of a router.
func (g Gateways) elect(router, present string) string {
	if slices.Contains(g.Cut, present) || len(g.Able) == 0 && slices.Contains(g.Lost, present) {
		return present
	}
	return Elect(router, present, g.Able)
}

// Router decides about a router: it returns the status that should be stored.
// zones gives out conntrack zones.
func Router(db state.Snapshot, r *model.Router, gateways Gateways, zones Numbers) *model.RouterStatus {
	next := model.RouterStatus{Name: r.Name, Life: r.Created}
	if old := db.RouterStatus(r.Name); old != nil {
		next = *old
	}
	if r.GatewayWrite != next.GatewayWrite {
		// A written gateway counts once, at the write, and only if it can
		// serve; it isn't remembered as a wish.
		if slices.Contains(gateways.Able, r.Gateway) {
			next.Gateway = r.Gateway
		}
		next.GatewayWrite = r.GatewayWrite
	}
	next.Gateway = gateways.elect(r.Name, next.Gateway)

	switch {
	case r.Peer == nil || !r.Peer.IP.IsValid():
		next.PeerIP, next.PeerMAC, next.PeerWrite = model.RouterStatus{}.PeerIP, model.MAC{}, 0
	case next.PeerIP != r.Peer.IP || next.PeerWrite != r.Peer.Write:
		next.PeerIP, next.PeerMAC, next.PeerWrite = r.Peer.IP, r.Peer.MAC, r.Peer.Write
	}

	if next.Zone == 0 {
		if z, ok := zones.Next(); ok {
			next.Zone = uint16(z)
		}
	}
	return &next
}

// PeerMAC is the MAC of a router's upstream router; zero: not known. A MAC that a
// client wrote counts at once, before the leader has stored the decision, so that
// a change of the peer leaves no moment without rules.
func PeerMAC(r *model.Router, st *model.RouterStatus) model.MAC {
	switch {
	case r == nil || r.Peer == nil:
		return model.MAC{}
	case st == nil || st.PeerIP != r.Peer.IP || st.PeerWrite != r.Peer.Write:
		return r.Peer.MAC
	}
	return st.PeerMAC
}
