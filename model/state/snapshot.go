package state

import (
	"iter"
	"net/netip"

	"github.com/cilium/statedb"

	"kvnet/model"
)

// Snapshot is a consistent view of all tables at one moment. It never changes
// and may be read by any number of goroutines. Objects in it must not be
// modified.
type Snapshot struct {
	txn      statedb.ReadTxn
	t        *tables
	revision int64
	complete bool
}

// Revision is the store's revision that the snapshot has reached.
func (s Snapshot) Revision() int64 { return s.revision }

// Complete tells whether the snapshot has once held everything that is stored.
// Before, what is missing is not known to be unwanted.
func (s Snapshot) Complete() bool { return s.complete }

// Get returns the object of that kind and key, or nil.
func (s Snapshot) Get(k model.Kind, key string) model.Object {
	t, ok := s.t.byKind[k]
	if !ok {
		return nil
	}
	if o, ok := t.find(s.txn, key); ok {
		return o
	}
	return nil
}

// Keys lists the keys of all objects of a kind, ascending.
func (s Snapshot) Keys(k model.Kind) []string {
	t, ok := s.t.byKind[k]
	if !ok {
		return nil
	}
	return t.keys(s.txn)
}

// Objects iterates over all objects of a kind by key.
func (s Snapshot) Objects(k model.Kind) iter.Seq[model.Object] {
	t, ok := s.t.byKind[k]
	if !ok {
		return func(func(model.Object) bool) {}
	}
	return t.objects(s.txn)
}

// Version grows whenever an object of the kind changes, comes or goes. It is for
// comparing snapshots of one DB.
func (s Snapshot) Version(k model.Kind) uint64 {
	t, ok := s.t.byKind[k]
	if !ok {
		return 0
	}
	return t.Revision(s.txn)
}

// Len is the number of objects of a kind.
func (s Snapshot) Len(k model.Kind) int {
	t, ok := s.t.byKind[k]
	if !ok {
		return 0
	}
	return t.NumObjects(s.txn)
}

func first[T any](o T, ok bool) T {
	var zero T
	if !ok {
		return zero
	}
	return o
}

// Network returns a network by its id, or nil.
func (s Snapshot) Network(id string) *model.Network { return first(s.t.networks.get(s.txn, id)) }

// Networks iterates over all networks by id.
func (s Snapshot) Networks() iter.Seq[*model.Network] { return s.t.networks.all(s.txn) }

// Router returns a router by its name, or nil.
func (s Snapshot) Router(name string) *model.Router { return first(s.t.routers.get(s.txn, name)) }

// Routers iterates over all routers by name.
func (s Snapshot) Routers() iter.Seq[*model.Router] { return s.t.routers.all(s.txn) }

// RoutersByInternal iterates over the routers that name the network as internal.
func (s Snapshot) RoutersByInternal(networkID string) iter.Seq[*model.Router] {
	return statedb.ToSeq(s.t.routers.List(s.txn, routerByInternal.Query(networkID)))
}

// RoutersByExternal iterates over the routers that name the network as external.
func (s Snapshot) RoutersByExternal(networkID string) iter.Seq[*model.Router] {
	return statedb.ToSeq(s.t.routers.List(s.txn, routerByExternal.Query(networkID)))
}

// RoutersByPeer iterates over the routers whose upstream router has the address.
func (s Snapshot) RoutersByPeer(ip string) iter.Seq[*model.Router] {
	return statedb.ToSeq(s.t.routers.List(s.txn, routerByPeer.Query(ip)))
}

// RouterStatus returns what is decided about a router, or nil. A status of an
// earlier life of the router is nil too.
func (s Snapshot) RouterStatus(name string) *model.RouterStatus {
	st := first(s.t.routerStatuses.get(s.txn, name))
	if r := s.Router(name); st == nil || r == nil || r.Created != st.Life {
		return nil
	}
	return st
}

// RouterStatuses iterates over all stored statuses, of ended lives too.
func (s Snapshot) RouterStatuses() iter.Seq[*model.RouterStatus] {
	return s.t.routerStatuses.all(s.txn)
}

// RoutersByGateway iterates over the names of routers whose stored gateway is
// the node.
func (s Snapshot) RoutersByGateway(hostname string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for st := range s.t.routerStatuses.List(s.txn, routerStatusByGateway.Query(hostname)) {
			if !yield(st.Name) {
				return
			}
		}
	}
}

// Port returns a port by its MAC, or nil.
func (s Snapshot) Port(mac model.MAC) *model.Port { return first(s.t.ports.get(s.txn, mac.String())) }

// PortByKey returns a port by its key (the MAC in lower case), or nil.
func (s Snapshot) PortByKey(key string) *model.Port { return first(s.t.ports.get(s.txn, key)) }

// Ports iterates over all ports by MAC.
func (s Snapshot) Ports() iter.Seq[*model.Port] { return s.t.ports.all(s.txn) }

// PortsByNetwork iterates over the ports of a network.
func (s Snapshot) PortsByNetwork(id string) iter.Seq[*model.Port] {
	return statedb.ToSeq(s.t.ports.List(s.txn, portByNetwork.Query(id)))
}

// PortsByDevice iterates over the ports whose worker's br-int is the switch.
func (s Snapshot) PortsByDevice(d model.DPID) iter.Seq[*model.Port] {
	return statedb.ToSeq(s.t.ports.List(s.txn, portByDevice.Query(d.String())))
}

// PortsByAddress iterates over the ports of a network that have the address, by
// MAC.
func (s Snapshot) PortsByAddress(networkID string, ip netip.Addr) iter.Seq[*model.Port] {
	return statedb.ToSeq(s.t.ports.List(s.txn, portByAddress.Query(addressKey(networkID, ip))))
}

// PortsByVM iterates over the ports of a VM.
func (s Snapshot) PortsByVM(name string) iter.Seq[*model.Port] {
	return statedb.ToSeq(s.t.ports.List(s.txn, portByVM.Query(name)))
}

// FloatingIP returns a floating IP by its id, or nil.
func (s Snapshot) FloatingIP(id string) *model.FloatingIP {
	return first(s.t.floatingIPs.get(s.txn, id))
}

// FloatingIPs iterates over all floating IPs by id.
func (s Snapshot) FloatingIPs() iter.Seq[*model.FloatingIP] { return s.t.floatingIPs.all(s.txn) }

// FloatingIPsByRouter iterates over the floating IPs of a router.
func (s Snapshot) FloatingIPsByRouter(name string) iter.Seq[*model.FloatingIP] {
	return statedb.ToSeq(s.t.floatingIPs.List(s.txn, floatingIPByRouter.Query(name)))
}

// FloatingIPsByFixed iterates over the floating IPs bound to an address.
func (s Snapshot) FloatingIPsByFixed(ip string) iter.Seq[*model.FloatingIP] {
	return statedb.ToSeq(s.t.floatingIPs.List(s.txn, floatingIPByFixed.Query(ip)))
}

// LoadBalancer returns a balancer by its name, or nil.
func (s Snapshot) LoadBalancer(name string) *model.LoadBalancer {
	return first(s.t.loadBalancers.get(s.txn, name))
}

// LoadBalancers iterates over all balancers by name.
func (s Snapshot) LoadBalancers() iter.Seq[*model.LoadBalancer] { return s.t.loadBalancers.all(s.txn) }

// LoadBalancersByNetwork iterates over the balancers of a network.
func (s Snapshot) LoadBalancersByNetwork(id string) iter.Seq[*model.LoadBalancer] {
	return statedb.ToSeq(s.t.loadBalancers.List(s.txn, loadBalancerByNetwork.Query(id)))
}

// LoadBalancersByVIP iterates over the balancers of a virtual address.
func (s Snapshot) LoadBalancersByVIP(vip netip.Addr) iter.Seq[*model.LoadBalancer] {
	return statedb.ToSeq(s.t.loadBalancers.List(s.txn, loadBalancerByVIP.Query(vip.String())))
}

// LoadBalancerStatus returns what is decided about a balancer of this life, or
// nil.
func (s Snapshot) LoadBalancerStatus(name string) *model.LoadBalancerStatus {
	st := first(s.t.loadBalancerStatuses.get(s.txn, name))
	if l := s.LoadBalancer(name); st == nil || l == nil || l.Created != st.Life {
		return nil
	}
	return st
}

// LoadBalancerStatuses iterates over all stored statuses, of ended lives too.
func (s Snapshot) LoadBalancerStatuses() iter.Seq[*model.LoadBalancerStatus] {
	return s.t.loadBalancerStatuses.all(s.txn)
}

// SecurityGroup returns a security group by its id, or nil.
func (s Snapshot) SecurityGroup(id string) *model.SecurityGroup {
	return first(s.t.securityGroups.get(s.txn, id))
}

// SecurityGroups iterates over all security groups by id.
func (s Snapshot) SecurityGroups() iter.Seq[*model.SecurityGroup] {
	return s.t.securityGroups.all(s.txn)
}

// Node returns a node by its hostname, or nil.
func (s Snapshot) Node(hostname string) *model.Node { return first(s.t.nodes.get(s.txn, hostname)) }

// Nodes iterates over all nodes by hostname.
func (s Snapshot) Nodes() iter.Seq[*model.Node] { return s.t.nodes.all(s.txn) }

// NodeByBridge returns the node that names the switch as one of its bridges, or
// nil. The store lets no two nodes name one br-int or br-tun.
func (s Snapshot) NodeByBridge(d model.DPID) *model.Node {
	for n := range s.t.nodes.List(s.txn, nodeByBridge.Query(d.String())) {
		return n
	}
	return nil
}

// NodesByBridge iterates over the nodes that name the switch as one of their
// bridges.
func (s Snapshot) NodesByBridge(d model.DPID) iter.Seq[*model.Node] {
	return statedb.ToSeq(s.t.nodes.List(s.txn, nodeByBridge.Query(d.String())))
}

// NodeByIntegration returns the node whose br-int the device is, or nil.
func (s Snapshot) NodeByIntegration(id model.DeviceID) *model.Node {
	d, ok := id.DPID()
	if !ok {
		return nil
	}
	for n := range s.t.nodes.List(s.txn, nodeByBridge.Query(d.String())) {
		if n.IntegrationDPID() == d {
			return n
		}
	}
	return nil
}

// NodeStatus returns what is decided about a node of this life, or nil.
func (s Snapshot) NodeStatus(hostname string) *model.NodeStatus {
	st := first(s.t.nodeStatuses.get(s.txn, hostname))
	if n := s.Node(hostname); st == nil || n == nil || n.Created != st.Life {
		return nil
	}
	return st
}

// NodeStatuses iterates over all stored statuses, of ended lives too.
func (s Snapshot) NodeStatuses() iter.Seq[*model.NodeStatus] { return s.t.nodeStatuses.all(s.txn) }

// NodeState is the state of a node: INIT until something is decided.
func (s Snapshot) NodeState(hostname string) model.NodeState {
	if st := s.NodeStatus(hostname); st != nil {
		return st.State
	}
	return model.NodeInit
}

// APIConfig returns the configuration of the Kubernetes API, or nil.
func (s Snapshot) APIConfig() *model.APIConfig {
	return first(s.t.apiConfigs.get(s.txn, model.APIConfigKey))
}

// Switch returns a switch that has been connected, or nil.
func (s Snapshot) Switch(d model.DPID) *model.Switch {
	return first(s.t.switches.get(s.txn, d.String()))
}

// Switches iterates over all switches that have been connected.
func (s Snapshot) Switches() iter.Seq[*model.Switch] { return s.t.switches.all(s.txn) }

// SwitchPort returns a port of a connected switch by its name, or nil.
func (s Snapshot) SwitchPort(d model.DPID, name string) *model.SwitchPort {
	return first(s.t.switchPorts.get(s.txn, d.String()+"/"+name))
}

// SwitchPorts iterates over the ports of a connected switch by name.
func (s Snapshot) SwitchPorts(d model.DPID) iter.Seq[*model.SwitchPort] {
	return statedb.ToSeq(s.t.switchPorts.List(s.txn, switchPortBySwitch.Query(d.String())))
}
