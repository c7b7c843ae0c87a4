package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// DecisionStore writes decisions under a term. *store.Store implements it.
type DecisionStore interface {
	Decide(ctx context.Context, t store.Term, d []store.Decision) (int64, error)
}

// maxZone is the highest conntrack zone (16 bits, ovs-fields(7)).
const maxZone = 0xffff

// retryAfter is how long the decider waits before it writes again what could not
// be written.
const retryAfter = 200 * time.Millisecond

// DeciderConfig says how a Decider works.
type DeciderConfig struct {
	DB    *state.DB
	Store DecisionStore
	Term  store.Term
	// ZoneBase is the number below the first conntrack zone: zones are given out
	// from ZoneBase+1 up.
	ZoneBase uint16
	// Grace is how long after the take-over a bridge that has not come counts as
	// neither there nor lost. Default: 10 s.
	Grace time.Duration
	// CutGrace is how long a router stays on a gateway that has lost one switch while
	// another one of it is connected. Default: 3 s; a switch tries again after 1 s,
	// and then after 2 s more.
	CutGrace time.Duration
	// LostGrace is how long a router stays on a gateway that was lost, if no other
	// gateway is complete. Default: 5 s. It is no shorter than CutGrace.
	LostGrace time.Duration
	Logger    *slog.Logger
}

// Decider runs the functions of model/decide whenever what they look at changes,
// and writes their results under the leader's term.
type Decider struct {
	c      DeciderConfig
	zones  *numbers // by router
	groups *numbers // by balancer
	macs   *numbers // by node

	nodes, routers, balancers map[string]struct{} // to be decided again
	allGateways               bool                // routers without a living gateway too
	lost                      map[string]loss     // nodes that became INCOMPLETE
	graceOver                 bool
}

// NewDecider makes a Decider.
func NewDecider(c DeciderConfig) *Decider {
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.CutGrace == 0 {
		c.CutGrace = 3 * time.Second
	}
	if c.LostGrace == 0 {
		c.LostGrace = 5 * time.Second
	}
	c.LostGrace = max(c.LostGrace, c.CutGrace)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Decider{c: c, lost: map[string]loss{},
		zones:  newNumbers(decide.NewAllocator(uint32(c.ZoneBase)+1, maxZone)),
		groups: newNumbers(decide.NewAllocator(flow.GroupIDMin, flow.GroupIDMax)),
		macs:   newNumbers(decide.NewExternalMACs()),
		nodes:  map[string]struct{}{}, routers: map[string]struct{}{}, balancers: map[string]struct{}{}}
}

// Run decides until ctx ends or the term is no longer in force; then it returns
// an error that is store.ErrNotLeader.
func (d *Decider) Run(ctx context.Context) error {
	sub, snap := d.c.DB.Subscribe()
	defer sub.Close()
	grace := time.NewTimer(d.c.Grace)
	defer grace.Stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	lost := time.NewTimer(time.Hour)
	defer lost.Stop()
	started := false
	for {
		if snap.Complete() && !started {
			started = true
			snap, _ = sub.Take()
			d.begin(snap)
		}
		if started {
			again, err := d.decide(ctx, snap)
			if err != nil {
				return err
			}
			if again {
				retry.Reset(retryAfter)
			}
		}
		if wait, any := d.nextLost(); any {
			lost.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-lost.C:
			d.forgetLost(snap)
		case <-sub.C():
			var changes []model.Change
			snap, changes = sub.Take()
			if started {
				for _, c := range changes {
					d.changed(snap, c)
				}
			}
		case <-grace.C:
			d.graceOver = true
			for n := range snap.Nodes() {
				d.nodes[n.Hostname] = struct{}{}
			}
			for h := range d.lost { // what has not come yet is gone now
				d.markRouters(snap, h)
			}
		case <-retry.C:
		}
	}
}

// begin starts from everything that is stored.
func (d *Decider) begin(snap state.Snapshot) {
	for n := range snap.Nodes() {
		d.nodes[n.Hostname] = struct{}{}
	}
	for st := range snap.NodeStatuses() {
		d.macs.Use(decide.ExternalMACNumber(st.ExternalMAC))
		d.nodes[st.Hostname] = struct{}{}
		d.noteLost(st)
	}
	for r := range snap.Routers() {
		d.routers[r.Name] = struct{}{}
	}
	for st := range snap.RouterStatuses() {
		d.zones.Use(uint32(st.Zone))
		d.routers[st.Name] = struct{}{}
	}
	for l := range snap.LoadBalancers() {
		d.balancers[l.Name] = struct{}{}
	}
	for st := range snap.LoadBalancerStatuses() {
		d.groups.Use(st.GroupID)
		d.balancers[st.Name] = struct{}{}
	}
}

// changed marks what a change concerns.
func (d *Decider) changed(snap state.Snapshot, c model.Change) {
	switch c.Kind {
	case model.KindNode:
		d.nodes[c.Key] = struct{}{}
		d.gatewayChanged(snap, c.Key)
	case model.KindNodeStatus:
		old, now := model.OldNew[*model.NodeStatus](c)
		if now != nil {
			d.macs.Use(decide.ExternalMACNumber(now.ExternalMAC))
		}
		if old != nil {
			d.macs.Free(decide.ExternalMACNumber(old.ExternalMAC))
		}
		if st := snap.NodeStatus(c.Key); st != nil && !st.ExternalMAC.IsZero() {
			d.macs.stored(c.Key)
		}
		d.nodes[c.Key] = struct{}{}
		if now != nil {
			d.noteLost(now)
		} else {
			delete(d.lost, c.Key)
		}
		d.gatewayChanged(snap, c.Key)
	case model.KindSwitch:
		old, now := model.OldNew[*model.Switch](c)
		if old != nil && now != nil && old.Connected == now.Connected {
			return
		}
		for _, sw := range model.Versions[*model.Switch](c) {
			if n := snap.NodeByBridge(sw.DPID); n != nil {
				d.nodes[n.Hostname] = struct{}{}
				d.stillLost(snap, n.Hostname)
			}
		}
	case model.KindRouter:
		d.routers[c.Key] = struct{}{}
	case model.KindRouterStatus:
		old, now := model.OldNew[*model.RouterStatus](c)
		if now != nil {
			d.zones.Use(uint32(now.Zone))
		}
		if old != nil {
			d.zones.Free(uint32(old.Zone))
		}
		if snap.RouterStatus(c.Key) != nil {
			d.zones.stored(c.Key)
		}
		d.routers[c.Key] = struct{}{}
	case model.KindLoadBalancer:
		d.balancers[c.Key] = struct{}{}
	case model.KindLoadBalancerStatus:
		old, now := model.OldNew[*model.LoadBalancerStatus](c)
		if now != nil {
			d.groups.Use(now.GroupID)
		}
		if old != nil {
			d.groups.Free(old.GroupID)
		}
		if snap.LoadBalancerStatus(c.Key) != nil {
			d.groups.stored(c.Key)
		}
		d.balancers[c.Key] = struct{}{}
	}
}

// gatewayChanged marks the routers that a change of a node may move: those that
// it serves, and, if it can serve now, those that nobody serves.
func (d *Decider) gatewayChanged(snap state.Snapshot, hostname string) {
	d.markRouters(snap, hostname)
	if snap.NodeState(hostname) == model.NodeComplete {
		d.allGateways = true
	}
}

// decide computes and writes what is marked. again tells that something is left
// to be tried later.
func (d *Decider) decide(ctx context.Context, snap state.Snapshot) (again bool, err error) {
	var ds []store.Decision
	for _, h := range byAge(snap, d.nodes) {
		ds = d.add(ds, snap, model.KindNodeStatus, h, func() model.Object {
			n := snap.Node(h)
			if n == nil {
				d.macs.stored(h)
				return nil
			}
			st := decide.Node(snap, n, d.graceOver, d.macs.of(h))
			if n.Type == model.NodeGateway && st.ExternalMAC.IsZero() {
				d.c.Logger.Error("no external MAC is free", "node", h)
			}
			return st
		})
	}
	clear(d.nodes)
	if len(ds) > 0 {
		// Routers are decided on stored node states only, so these come first.
		return d.write(ctx, ds)
	}
	if d.allGateways {
		d.allGateways = false
		for r := range snap.Routers() {
			// One that has stayed on a lost gateway has somewhere to go now.
			if st := snap.RouterStatus(r.Name); st == nil || snap.NodeState(st.Gateway) != model.NodeComplete {
				d.routers[r.Name] = struct{}{}
			}
		}
	}
	if len(d.routers) > 0 {
		gateways := d.lostGateways(snap)
		gateways.Able = decide.CompleteGateways(snap)
		for name := range d.routers {
			ds = d.add(ds, snap, model.KindRouterStatus, name, func() model.Object {
				r := snap.Router(name)
				if r == nil {
					d.zones.stored(name)
					return nil
				}
				st := decide.Router(snap, r, gateways, d.zones.of(name))
				if st.Zone == 0 {
					d.c.Logger.Error("no conntrack zone is free", "router", name)
				}
				return st
			})
		}
		clear(d.routers)
	}
	for name := range d.balancers {
		ds = d.add(ds, snap, model.KindLoadBalancerStatus, name, func() model.Object {
			l := snap.LoadBalancer(name)
			if l == nil {
				d.groups.stored(name)
				return nil
			}
			st := decide.LoadBalancer(snap, l, d.groups.of(name))
			if st == nil {
				d.c.Logger.Error("no group id is free", "loadbalancer", name)
				return nil
			}
			return st
		})
	}
	clear(d.balancers)
	if len(ds) == 0 {
		return false, nil
	}
	return d.write(ctx, ds)
}

// byAge lists nodes in the order in which they came, so that of gateways that are
// decided together the first gets the first address.
func byAge(snap state.Snapshot, nodes map[string]struct{}) []string {
	created := func(h string) int64 {
		if n := snap.Node(h); n != nil {
			return n.Created
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(created(a), created(b)), cmp.Compare(a, b))
	})
}

// add appends the decision about one object if it differs from the stored one.
func (d *Decider) add(ds []store.Decision, snap state.Snapshot, kind model.Kind, key string, f func() model.Object) []store.Decision {
	old, now := snap.Get(kind, key), f()
	switch {
	case old == nil && now == nil:
		return ds
	case old != nil && now != nil && same(old, now):
		return ds
	}
	return append(ds, store.Decision{Old: old, New: now})
}

// same compares decisions without their revisions.
func same(a, b model.Object) bool {
	switch a := a.(type) {
	case *model.RouterStatus:
		x, y := *a, *b.(*model.RouterStatus)
		x.Meta, y.Meta = model.Meta{}, model.Meta{}
		return x == y
	case *model.NodeStatus:
		x, y := *a, *b.(*model.NodeStatus)
		x.Meta, y.Meta = model.Meta{}, model.Meta{}
		return x == y
	case *model.LoadBalancerStatus:
		x, y := *a, *b.(*model.LoadBalancerStatus)
		x.Meta, y.Meta = model.Meta{}, model.Meta{}
		return x == y
	}
	return false
}

// write stores decisions and waits until the snapshot has them, so that nothing
// is decided twice. What could not be written is marked again.
func (d *Decider) write(ctx context.Context, ds []store.Decision) (again bool, err error) {
	rev, err := d.c.Store.Decide(ctx, d.c.Term, ds)
	switch {
	case err == nil:
		d.tell(ds)
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := d.c.DB.WaitRevision(wait, rev); err != nil && ctx.Err() == nil {
			d.c.Logger.Warn("the state lags behind the store", "revision", rev, "error", err)
		}
		return false, nil
	case ctx.Err() != nil:
		return false, nil
	case errors.Is(err, store.ErrNotLeader):
		return false, err
	case !errors.Is(err, store.ErrConflict):
		d.c.Logger.Error("decisions not written, trying again", "decisions", len(ds), "error", err)
	}
	for _, x := range ds {
		o := x.New
		if o == nil {
			o = x.Old
		}
		switch o.Kind() {
		case model.KindNodeStatus:
			d.nodes[o.Key()] = struct{}{}
		case model.KindRouterStatus:
			d.routers[o.Key()] = struct{}{}
		case model.KindLoadBalancerStatus:
			d.balancers[o.Key()] = struct{}{}
		}
	}
	return true, nil
}

// Learned stores the MAC of a router's upstream router that was seen in an ARP
// reply. It does nothing if the router has another upstream router by now.
func (d *Decider) Learned(ctx context.Context, router string, peerIP netip.Addr, mac model.MAC) error {
	for {
		snap := d.c.DB.Snapshot()
		r, old := snap.Router(router), snap.RouterStatus(router)
		if r == nil || old == nil || r.Peer == nil || r.Peer.IP != peerIP || old.PeerIP != peerIP || old.PeerWrite != r.Peer.Write || old.PeerMAC == mac {
			return nil
		}
		next := *old
		next.PeerMAC = mac
		rev, err := d.c.Store.Decide(ctx, d.c.Term, []store.Decision{{Old: old, New: &next}})
		if err == nil {
			return d.c.DB.WaitRevision(ctx, rev)
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("store the MAC %s of peer router %s of router %q: %w", mac, peerIP, router, err)
		}
		// Somebody decided about the router meanwhile: look again when the
		// snapshot shows it.
		if err := d.c.DB.Wait(ctx, func(s state.Snapshot) bool { return s.RouterStatus(router) != old }); err != nil {
			return fmt.Errorf("store the MAC %s of peer router %s of router %q: %w", mac, peerIP, router, err)
		}
	}
}
