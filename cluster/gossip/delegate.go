package gossip

import (
	"bytes"
	"errors"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls. Memberlist holds locks meanwhile, so no
// method waits or calls back.
type delegate struct{ g *Gossip }

var (
	_ memberlist.Delegate         = delegate{}
	_ memberlist.EventDelegate    = delegate{}
	_ memberlist.AliveDelegate    = delegate{}
	_ memberlist.MergeDelegate    = delegate{}
	_ memberlist.ConflictDelegate = delegate{}
	_ memberlist.PingDelegate     = delegate{}
)

// NodeMeta returns what the others shall know of this server.
func (d delegate) NodeMeta(int) []byte {
	b, _ := d.g.meta().encode() // checked when it was set
	return b
}

// NotifyMsg takes in what another member sent.
func (d delegate) NotifyMsg(b []byte) {
	f, err := decodeFrame(b)
	if err != nil {
		d.g.log("a message of another member can't be read", "err", err)
		return
	}
	if f.kind == frameLeave {
		d.g.view.leave(f.from, f.instance)
		return
	}
	if d.g.calls.received(f) {
		d.g.log("a request of another member is dropped: too many wait already", "member", f.from, "kind", f.method)
	}
}

// GetBroadcasts returns nothing: nothing is broadcast but what memberlist does.
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing: members have no state beside their metadata.
func (delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores state of later versions.
func (delegate) MergeRemoteState([]byte, bool) {}

// NotifyJoin takes in a member that memberlist hasn't counted as alive before.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.listed(n, true) }

// NotifyUpdate takes in new metadata.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.listed(n, false) }

func (d delegate) listed(n *memberlist.Node, joined bool) {
	if m, err := decodeMeta(n.Meta); err == nil { // NotifyAlive let nothing else in
		d.g.view.listed(n.Name, n.Address(), m, joined)
	}
}

// NotifyLeave takes in that a member failed or left.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.g.view.unlisted(n.Name) }

// NotifyAlive refuses news of servers that can't be members.
func (d delegate) NotifyAlive(n *memberlist.Node) error { return d.g.admit(n) }

// NotifyMerge refuses to join a server whose members can't be this one's.
func (d delegate) NotifyMerge(peers []*memberlist.Node) error {
	for _, n := range peers {
		if n.State != memberlist.StateAlive && n.State != memberlist.StateSuspect {
			continue
		}
		if err := d.g.admit(n); err != nil {
			return err
		}
	}
	return nil
}

// NotifyConflict is called for a name with two addresses, which admit refuses
// already as long as the view and memberlist agree.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.refuse(&RefusedError{
		Name: other.Name, Address: other.Address(), Reason: NameTaken,
		Text: "the member at " + existing.Address() + " has the same name",
	})
}

// AckPayload adds nothing to the answer to a probe.
func (delegate) AckPayload() []byte { return nil }

// NotifyPingComplete takes in a sign of life.
func (d delegate) NotifyPingComplete(n *memberlist.Node, rtt time.Duration, _ []byte) {
	d.g.view.heard(n.Name, time.Now().Add(-rtt))
}

func (g *Gossip) admit(n *memberlist.Node) error {
	members, _ := g.view.members()
	err := admit(g.c.Name, g.address, g.ClusterID(), members, applicant{
		name: n.Name, address: n.Address(), meta: bytes.Clone(n.Meta), minProtocol: n.DMin, maxProtocol: n.DMax,
	})
	var r *RefusedError
	if errors.As(err, &r) {
		g.refuse(r)
		// A member of no cluster may have gone to another one than this
		// server's. It answers probes as before, so memberlist keeps it.
		if m, ok := g.view.get(n.Name); ok && r.Reason == OtherCluster && m.Address == r.Address {
			g.view.leave(m.Name, m.Meta.Instance)
		}
	}
	return err
}
