package decide

import (
	"encoding/binary"
	"slices"

	"kvnet/model"
	"kvnet/model/state"
)

// requiredBridges are the switches that must be connected for n to be COMPLETE:
// br-int, br-tun and, for a gateway, the physical bridges that it names. A
// worker's physical bridge has no controller. ok is false if one of them names
// no OpenFlow switch, so that the node can't become COMPLETE.
func requiredBridges(n *model.Node) (ids []model.DPID, ok bool) {
	want := []model.DeviceID{n.IntegrationBridge, n.TunnelBridge}
	if n.Type == model.NodeGateway {
		for _, p := range n.PhysIntfs {
			if p.PhysBridge != "" {
				want = append(want, p.PhysBridge)
			}
		}
	}
	for _, w := range want {
		d, good := w.DPID()
		if !good {
			return nil, false
		}
		ids = append(ids, d)
	}
	return ids, true
}

// AnyConnected tells whether one at least of the switches that n has to have is
// connected, or may be: it has not come since this leader took over, and the grace
// for that isn't over.
func AnyConnected(db state.Snapshot, n *model.Node, graceOver bool) bool {
	ids, _ := requiredBridges(n)
	return slices.ContainsFunc(ids, func(d model.DPID) bool {
		sw := db.Switch(d)
		return sw != nil && sw.Connected || sw == nil && !graceOver
	})
}

// Node decides the state of a node whose bridges others make. grace is over once
// a bridge that has not come since this leader took over counts as lost: until
// then a COMPLETE node stays COMPLETE unless a connection that this leader had
// was lost, because not known is not the same as gone. macs gives out the numbers
// of external addresses.
func Node(db state.Snapshot, n *model.Node, graceOver bool, macs Numbers) *model.NodeStatus {
	next := model.NodeStatus{Hostname: n.Hostname, Life: n.Created, State: model.NodeInit, InitRequest: n.InitRequest}
	if old := db.NodeStatus(n.Hostname); old != nil {
		next = *old
	}
	if next.InitRequest != n.InitRequest {
		// The bootstrap starts again; it is over at once if all is in place.
		next.InitRequest = n.InitRequest
		next.State = model.NodeInit
	}
	ids, ok := requiredBridges(n)
	connected, lost := ok, !ok
	for _, d := range ids {
		sw := db.Switch(d)
		if sw == nil || !sw.Connected {
			connected = false
		}
		if sw != nil && !sw.Connected || sw == nil && graceOver {
			lost = true
		}
	}
	switch {
	case connected:
		next.State = model.NodeComplete
	case next.State == model.NodeComplete && lost:
		next.State = model.NodeIncomplete
	}
	if n.Type == model.NodeGateway && next.ExternalMAC.IsZero() {
		if i, ok := macs.Next(); ok {
			next.ExternalMAC = externalMAC(i)
		}
	}
	return &next
}

// NewExternalMACs makes an allocator of the numbers of external addresses.
func NewExternalMACs() *Allocator {
	first := ExternalMACNumber(model.FirstExternalMAC)
	return NewAllocator(first, first+0xffff)
}

// ExternalMACNumber is the number that an allocator knows an external address by;
// 0 for none.
func ExternalMACNumber(m model.MAC) uint32 { return binary.BigEndian.Uint32(m[2:]) }

func externalMAC(n uint32) model.MAC {
	m := model.FirstExternalMAC
	binary.BigEndian.PutUint32(m[2:], n)
	return m
}
