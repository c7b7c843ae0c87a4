package loadbalancer

import (
	"net/netip"
	"slices"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Affected implements handlers.Handler. The rules of members are many, so they
// are named only if something that they depend on has changed.
func (Handler) Affected(db state.Snapshot, c model.Change) []flow.Owner {
	a := affected{db: db}
	switch c.Kind {
	case model.KindLoadBalancer:
		a.loadBalancer(model.OldNew[*model.LoadBalancer](c))
	case model.KindLoadBalancerStatus:
		if lb := db.LoadBalancer(c.Key); lb != nil {
			a.whole(lb)
		}
	case model.KindFloatingIP:
		for _, fip := range model.Versions[*model.FloatingIP](c) {
			a.floating(fip)
		}
	case model.KindPort:
		for _, p := range model.Versions[*model.Port](c) {
			a.port(p)
		}
	case model.KindNetwork:
		a.network(c)
	case model.KindRouter:
		a.router(model.OldNew[*model.Router](c))
	case model.KindRouterStatus:
		a.routerStatus(c)
	case model.KindNode:
		a.node(c)
	case model.KindNodeStatus:
		if handlers.ExternalMACChanged(c) {
			a.gateway(c.Key, a.front)
		}
	}
	return a.set.List()
}

type affected struct {
	db  state.Snapshot
	set handlers.OwnerSet
}

// front adds the owners of a balancer but those of its members.
func (a *affected) front(lb *model.LoadBalancer) {
	a.set.Add(balancerOwner(lb.Name))
	for fip := range a.db.FloatingIPsByFixed(lb.VIP.String()) {
		a.set.Add(floatingOwner(lb.Name, fip.ID))
	}
}

// whole adds all owners of a balancer.
func (a *affected) whole(lb *model.LoadBalancer) {
	a.front(lb)
	for _, ip := range lb.Members {
		a.set.Add(memberOwner(lb.Name, ip))
	}
}

// placed adds all owners of a balancer whose router or gateway may be another
// now, and those of balancers with the same VIP, which may have to make way for
// it or no longer have to.
func (a *affected) placed(lb *model.LoadBalancer) {
	a.whole(lb)
	a.beside(lb, lb.Members)
	for other := range a.db.LoadBalancersByVIP(lb.VIP) {
		a.whole(other)
	}
}

// beside adds the owners of other balancers that may lose a service to lb or get one
// back: those at its VIP, and those of its members that are in changed.
func (a *affected) beside(lb *model.LoadBalancer, changed []netip.Addr) {
	for o := range a.db.LoadBalancersByVIP(lb.VIP) {
		a.set.Add(balancerOwner(o.Name))
	}
	if len(changed) == 0 {
		return
	}
	members := make(map[netip.Addr]bool, len(changed))
	for _, ip := range changed {
		members[ip] = true
	}
	a.behind(lb.NetworkID, func(o *model.LoadBalancer) {
		for _, ip := range o.Members {
			if members[ip] {
				a.set.Add(memberOwner(o.Name, ip))
			}
		}
	})
}

// floating adds the owners of a floating IP, and of those that are bound to the same
// VIP, which may have to make way for it or no longer have to.
func (a *affected) floating(fip *model.FloatingIP) {
	for lb := range a.db.LoadBalancersByVIP(fip.FixedIP) {
		a.set.Add(floatingOwner(lb.Name, fip.ID))
		for other := range a.db.FloatingIPsByFixed(fip.FixedIP.String()) {
			a.set.Add(floatingOwner(lb.Name, other.ID))
		}
	}
}

// behind calls f for the balancers of a network.
func (a *affected) behind(network string, f func(*model.LoadBalancer)) {
	for lb := range a.db.LoadBalancersByNetwork(network) {
		f(lb)
	}
}

// behindRouter calls f for the balancers of all internal networks of r.
func (a *affected) behindRouter(r *model.Router, f func(*model.LoadBalancer)) {
	for _, id := range internal(r) {
		a.behind(id, f)
	}
}

// gateway calls f for the balancers of all routers on a gateway.
func (a *affected) gateway(hostname string, f func(*model.LoadBalancer)) {
	for router := range a.db.RoutersByGateway(hostname) {
		a.behindRouter(a.db.Router(router), f)
	}
}

func (a *affected) loadBalancer(old, new *model.LoadBalancer) {
	switch {
	case old == nil && new == nil: // it came and went
	case old == nil:
		a.placed(new)
	case new == nil:
		a.placed(old)
	case old.Created != new.Created || old.NetworkID != new.NetworkID || old.VIP != new.VIP:
		a.placed(old)
		a.placed(new)
	case !slices.EqualFunc(old.Rules, new.Rules, equalRules):
		for _, lb := range []*model.LoadBalancer{old, new} {
			a.whole(lb)
			a.beside(lb, lb.Members)
		}
	default:
		a.set.Add(balancerOwner(new.Name))
		var changed []netip.Addr
		for _, x := range [][2][]netip.Addr{{old.Members, new.Members}, {new.Members, old.Members}} {
			for _, ip := range x[0] {
				if !slices.Contains(x[1], ip) {
					a.set.Add(memberOwner(new.Name, ip))
					changed = append(changed, ip)
				}
			}
		}
		if len(changed) != 0 {
			a.beside(new, changed)
		}
	}
}

func equalRules(a, b model.LoadBalancerRule) bool {
	return a.Protocol == b.Protocol && equal(a.PortRangeMin, b.PortRangeMin) && equal(a.PortRangeMax, b.PortRangeMax)
}

func equal(a, b *int32) bool { return a == b || a != nil && b != nil && *a == *b }

// port adds the owners that p matters to as a member.
func (a *affected) port(p *model.Port) {
	a.behind(p.NetworkID, func(lb *model.LoadBalancer) {
		if slices.Contains(lb.Members, p.IP) {
			a.set.Add(balancerOwner(lb.Name))
			a.set.Add(memberOwner(lb.Name, p.IP))
		}
	})
}

// networkView is what rules depend on in a network.
type networkView struct {
	exists, tunnel bool
	kind           model.NetworkType
	segment, name  string
}

func viewNetwork(n *model.Network) networkView {
	if n == nil {
		return networkView{}
	}
	return networkView{true, n.Type.IsTunnel(), n.Type, n.SegmentID, n.Name}
}

func (a *affected) network(c model.Change) {
	old, new := model.OldNew[*model.Network](c)
	if viewNetwork(old) == viewNetwork(new) {
		return
	}
	a.behind(c.Key, a.whole)
	// Its tag may be one that packets to the router's other balancers carry.
	for r := range a.db.RoutersByInternal(c.Key) {
		a.behindRouter(r, a.front)
	}
	for r := range a.db.RoutersByExternal(c.Key) {
		a.behindRouter(r, a.front)
	}
}

// routerView is what rules depend on in a router, but for its internal networks.
type routerView struct {
	created   int64
	mac       model.MAC
	peer      netip.Addr
	peerMAC   model.MAC
	peerWrite uint64
	external  string
}

func viewRouter(r *model.Router) (v routerView) {
	if r == nil {
		return v
	}
	v = routerView{created: r.Created, mac: r.MAC, peer: handlers.PeerIP(r)}
	if r.Peer != nil {
		v.peerMAC, v.peerWrite = r.Peer.MAC, r.Peer.Write
	}
	if r.External != nil {
		v.external = r.External.NetworkID
	}
	return v
}

func (a *affected) router(old, new *model.Router) {
	was, is := internal(old), internal(new)
	before, now := viewRouter(old), viewRouter(new)
	if before.created != now.created || !slices.Equal(was, is) {
		// Its floating IPs may be bound to balancers that it did not serve, or
		// no longer serves.
		a.floatingOf(old)
		a.floatingOf(new)
	}
	if before.created != now.created || before.mac != now.mac {
		a.behindRouter(old, a.placed)
		a.behindRouter(new, a.placed)
		return
	}
	if before != now {
		a.behindRouter(new, a.front)
	}
	if slices.Equal(was, is) {
		return
	}
	a.behindRouter(new, a.front)
	for _, x := range [][2][]string{{was, is}, {is, was}} {
		for _, id := range x[0] {
			if !slices.Contains(x[1], id) {
				a.behind(id, a.placed)
			}
		}
	}
}

// internal are the internal networks of a router that may not exist.
func internal(r *model.Router) []string {
	if r == nil {
		return nil
	}
	return r.Internal
}

// floatingOf adds the owners of all floating IPs of a router.
func (a *affected) floatingOf(r *model.Router) {
	if r == nil {
		return
	}
	for fip := range a.db.FloatingIPsByRouter(r.Name) {
		a.floating(fip)
	}
}

// placeView is what members' rules depend on in a router's status.
type placeView struct {
	life    int64
	gateway string
	zoned   bool
}

func viewPlace(s *model.RouterStatus) placeView {
	if s == nil {
		return placeView{}
	}
	return placeView{s.Life, s.Gateway, s.Zone != 0}
}

func (a *affected) routerStatus(c model.Change) {
	old, new := model.OldNew[*model.RouterStatus](c)
	r := a.db.Router(c.Key)
	if viewPlace(old) != viewPlace(new) {
		a.behindRouter(r, a.placed)
		return
	}
	if old != nil && new != nil && old.Zone == new.Zone && decide.PeerMAC(r, old) == decide.PeerMAC(r, new) {
		return
	}
	a.behindRouter(r, a.front)
}

// gatewayView is what rules depend on in a gateway, but for its physical networks.
type gatewayView struct {
	exists              bool
	integration, tunnel model.DPID
	patch               string
}

// workerView is what rules depend on in a worker.
type workerView struct {
	exists      bool
	integration model.DPID
	data        netip.Addr
}

func viewNode(n *model.Node) (g gatewayView, w workerView) {
	if n == nil {
		return g, w
	}
	return gatewayView{true, n.IntegrationDPID(), n.TunnelDPID(), n.ExternalPatchPort()},
		workerView{true, n.IntegrationDPID(), n.DataIP}
}

func (a *affected) node(c model.Change) {
	old, new := model.OldNew[*model.Node](c)
	oldGateway, oldWorker := viewNode(old)
	newGateway, newWorker := viewNode(new)
	if oldGateway != newGateway {
		a.gateway(c.Key, a.whole)
	} else if old != nil && new != nil && !slices.Equal(old.PhysIntfs, new.PhysIntfs) {
		a.gateway(c.Key, a.front)
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
