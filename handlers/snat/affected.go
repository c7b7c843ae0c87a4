package snat

import (
	"net/netip"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Affected implements handlers.Handler. The rules of ports are many, so they are
// named only if something that they depend on has changed.
func (Handler) Affected(db state.Snapshot, c model.Change) []flow.Owner {
	a := affected{db: db}
	switch c.Kind {
	case model.KindRouter:
		a.router(model.OldNew[*model.Router](c))
	case model.KindRouterStatus:
		a.routerStatus(c)
	case model.KindNetwork:
		a.network(c)
	case model.KindPort:
		for _, p := range model.Versions[*model.Port](c) {
			a.port(p)
		}
	case model.KindNode:
		a.node(c)
	case model.KindNodeStatus:
		if handlers.ExternalMACChanged(c) {
			for router := range db.RoutersByGateway(c.Key) {
				a.set.Add(routerOwner(router))
			}
		}
	case model.KindLoadBalancer:
		for _, lb := range model.Versions[*model.LoadBalancer](c) {
			for r := range db.RoutersByInternal(lb.NetworkID) {
				a.set.Add(routerOwner(r.Name))
			}
		}
	}
	return a.set.List()
}

type affected struct {
	db  state.Snapshot
	set handlers.OwnerSet
}

// ports adds the owners of a router for the ports of a network.
func (a *affected) ports(router, network string) {
	for p := range a.db.PortsByNetwork(network) {
		a.set.Add(portOwner(router, p))
	}
}

// port adds the owners of p, whatever router its network is behind.
func (a *affected) port(p *model.Port) {
	for r := range a.db.RoutersByInternal(p.NetworkID) {
		a.set.Add(portOwner(r.Name, p))
	}
}

// all adds all owners of a router.
func (a *affected) all(router string) {
	a.set.Add(routerOwner(router))
	if r := a.db.Router(router); r != nil {
		for _, id := range r.Internal {
			a.ports(router, id)
		}
	}
}

// routerView is what the rules of ports depend on in a router, but for its
// internal networks.
type routerView struct {
	created   int64
	wanted    bool
	mac       model.MAC
	ip, peer  netip.Addr
	peerKnown bool // a client wrote the peer's MAC, by the write peerWrite
	peerWrite uint64
	external  string
}

func viewRouter(r *model.Router) (v routerView) {
	if r == nil {
		return v
	}
	v = routerView{created: r.Created, mac: r.MAC, peer: handlers.PeerIP(r)}
	if r.Peer != nil {
		v.peerKnown, v.peerWrite = !r.Peer.MAC.IsZero(), r.Peer.Write
	}
	if r.External != nil {
		v.wanted, v.ip, v.external = r.EnableSNAT, r.SNATIP(), r.External.NetworkID
	}
	return v
}

func (a *affected) router(old, new *model.Router) {
	networks := map[string]int{} // 1: only in the old version, 2: only in the new one, 3: in both
	var key string
	if old != nil {
		key = old.Name
		for _, id := range old.Internal {
			networks[id] |= 1
		}
	}
	if new != nil {
		key = new.Name
		for _, id := range new.Internal {
			networks[id] |= 2
		}
	}
	a.set.Add(routerOwner(key))
	changed := viewRouter(old) != viewRouter(new)
	for id, in := range networks {
		if changed || in != 3 {
			a.ports(key, id)
		}
	}
}

// statusView is what the rules of ports depend on in a router's status.
type statusView struct {
	life           int64
	gateway        string
	peer           netip.Addr
	peerMAC, zoned bool
	peerWrite      uint64
}

func viewStatus(s *model.RouterStatus) statusView {
	if s == nil {
		return statusView{}
	}
	return statusView{s.Life, s.Gateway, s.PeerIP, !s.PeerMAC.IsZero(), s.Zone != 0, s.PeerWrite}
}

func (a *affected) routerStatus(c model.Change) {
	old, new := model.OldNew[*model.RouterStatus](c)
	if viewStatus(old) != viewStatus(new) {
		a.all(c.Key)
		return
	}
	a.set.Add(routerOwner(c.Key))
}

// networkView is what the rules of ports depend on in a network.
type networkView struct {
	exists, tunnel bool
	kind           model.NetworkType
	segment        string
}

func viewNetwork(n *model.Network) networkView {
	if n == nil {
		return networkView{}
	}
	return networkView{true, n.Type.IsTunnel(), n.Type, n.SegmentID}
}

func (a *affected) network(c model.Change) {
	old, new := model.OldNew[*model.Network](c)
	changed := viewNetwork(old) != viewNetwork(new)
	for r := range a.db.RoutersByInternal(c.Key) {
		a.set.Add(routerOwner(r.Name))
		if changed {
			a.ports(r.Name, c.Key)
		}
	}
	for r := range a.db.RoutersByExternal(c.Key) {
		a.set.Add(routerOwner(r.Name))
	}
}

// gatewayView is what rules depend on in a gateway. What is decided about a node is
// decided for one life.
type gatewayView struct {
	exists              bool
	life                int64
	integration, tunnel model.DPID
	patch               string
}

// workerView is what rules depend on in a worker.
type workerView struct {
	exists      bool
	hostname    string
	integration model.DPID
	data        netip.Addr
}

func viewNode(n *model.Node) (g gatewayView, w workerView) {
	if n == nil {
		return g, w
	}
	return gatewayView{true, n.Created, n.IntegrationDPID(), n.TunnelDPID(), n.ExternalPatchPort()},
		workerView{true, n.Hostname, n.IntegrationDPID(), n.DataIP}
}

func (a *affected) node(c model.Change) {
	old, new := model.OldNew[*model.Node](c)
	oldGateway, oldWorker := viewNode(old)
	newGateway, newWorker := viewNode(new)
	if oldGateway != newGateway {
		for router := range a.db.RoutersByGateway(c.Key) {
			a.all(router)
		}
	}
	if oldWorker == newWorker {
		return
	}
	for _, d := range []model.DPID{oldWorker.integration, newWorker.integration} {
		if d == 0 {
			continue
		}
		for p := range a.db.PortsByDevice(d) {
			a.port(p)
		}
	}
}
