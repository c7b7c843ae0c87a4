package state

import (
	"iter"
	"net/netip"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"

	"kvnet/model"
)

// table is one statedb table with the uniform operations that DB needs.
type table[T model.Object] struct {
	statedb.RWTable[T]
	primary statedb.Index[T, string]
}

func (t table[T]) get(txn statedb.ReadTxn, key string) (T, bool) {
	o, _, ok := t.Get(txn, t.primary.Query(key))
	return o, ok
}

func (t table[T]) all(txn statedb.ReadTxn) iter.Seq[T] {
	return statedb.ToSeq(t.All(txn))
}

func (t table[T]) insert(txn statedb.WriteTxn, o model.Object) (old model.Object, err error) {
	prev, had, err := t.Insert(txn, o.(T))
	if had {
		return prev, err
	}
	return nil, err
}

func (t table[T]) remove(txn statedb.WriteTxn, key string) (old model.Object, err error) {
	o, ok := t.get(txn, key)
	if !ok {
		return nil, nil
	}
	_, _, err = t.Delete(txn, o)
	return o, err
}

func (t table[T]) find(txn statedb.ReadTxn, key string) (model.Object, bool) {
	o, ok := t.get(txn, key)
	return o, ok
}

func (t table[T]) keys(txn statedb.ReadTxn) []string {
	var out []string
	for o := range t.all(txn) {
		out = append(out, o.Key())
	}
	return out
}

func (t table[T]) objects(txn statedb.ReadTxn) iter.Seq[model.Object] {
	return func(yield func(model.Object) bool) {
		for o := range t.all(txn) {
			if !yield(o) {
				return
			}
		}
	}
}

// anyTable is a table of any kind of object.
type anyTable interface {
	statedb.TableMeta
	insert(statedb.WriteTxn, model.Object) (model.Object, error)
	remove(statedb.WriteTxn, string) (model.Object, error)
	find(statedb.ReadTxn, string) (model.Object, bool)
	keys(statedb.ReadTxn) []string
	objects(statedb.ReadTxn) iter.Seq[model.Object]
	Revision(statedb.ReadTxn) statedb.Revision
}

func byKey[T model.Object]() statedb.Index[T, string] {
	return statedb.Index[T, string]{
		Name:       "key",
		FromObject: func(o T) index.KeySet { return index.NewKeySet(index.String(o.Key())) },
		FromKey:    index.String,
		FromString: index.FromString,
		Unique:     true,
	}
}

func by[T model.Object](name string, keys func(T) []string) statedb.Index[T, string] {
	return statedb.Index[T, string]{
		Name: name,
		FromObject: func(o T) index.KeySet {
			ks := keys(o)
			switch len(ks) {
			case 0:
				return index.EmptyKeySet
			case 1:
				return index.NewKeySet(index.String(ks[0]))
			}
			return index.StringSlice(ks)
		},
		FromKey:    index.String,
		FromString: index.FromString,
	}
}

func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// The secondary indexes: what handlers ask for when something changes.
var (
	routerByInternal = by("internal", func(r *model.Router) []string { return r.Internal })
	routerByExternal = by("external", func(r *model.Router) []string {
		if r.External == nil {
			return nil
		}
		return one(r.External.NetworkID)
	})
	routerByPeer = by("peer", func(r *model.Router) []string {
		if r.Peer == nil || !r.Peer.IP.IsValid() {
			return nil
		}
		return one(r.Peer.IP.String())
	})
	routerStatusByGateway = by("gateway", func(s *model.RouterStatus) []string { return one(s.Gateway) })

	portByNetwork = by("network", func(p *model.Port) []string { return one(p.NetworkID) })
	portByDevice  = by("device", func(p *model.Port) []string {
		if d, ok := p.DeviceID.DPID(); ok {
			return one(d.String())
		}
		return nil
	})
	portByAddress = by("address", func(p *model.Port) []string {
		if !p.IP.IsValid() {
			return nil
		}
		return one(addressKey(p.NetworkID, p.IP))
	})
	portByVM = by("vm", func(p *model.Port) []string { return one(p.VMName) })

	floatingIPByRouter = by("router", func(f *model.FloatingIP) []string { return one(f.RouterName) })
	floatingIPByFixed  = by("fixed", func(f *model.FloatingIP) []string {
		if !f.FixedIP.IsValid() {
			return nil
		}
		return one(f.FixedIP.String())
	})

	loadBalancerByNetwork = by("network", func(l *model.LoadBalancer) []string { return one(l.NetworkID) })
	loadBalancerByVIP     = by("vip", func(l *model.LoadBalancer) []string { return one(l.VIP.String()) })

	nodeByBridge = by("bridge", func(n *model.Node) []string {
		var out []string
		for _, d := range NodeBridges(n) {
			out = append(out, d.String())
		}
		return out
	})

	switchPortBySwitch = by("switch", func(p *model.SwitchPort) []string { return one(p.DPID.String()) })
)

// addressKey is the key of an address in a network; an address holds no slash.
func addressKey(networkID string, ip netip.Addr) string { return ip.String() + "/" + networkID }

// NodeBridges are the switches that n names: br-int, br-tun, physical bridges.
func NodeBridges(n *model.Node) []model.DPID {
	var out []model.DPID
	add := func(id model.DeviceID) {
		if d, ok := id.DPID(); ok {
			for _, x := range out {
				if x == d {
					return
				}
			}
			out = append(out, d)
		}
	}
	add(n.IntegrationBridge)
	add(n.TunnelBridge)
	for _, p := range n.PhysIntfs {
		add(p.PhysBridge)
	}
	return out
}

type tables struct {
	networks       table[*model.Network]
	routers        table[*model.Router]
	ports          table[*model.Port]
	floatingIPs    table[*model.FloatingIP]
	loadBalancers  table[*model.LoadBalancer]
	securityGroups table[*model.SecurityGroup]
	nodes          table[*model.Node]
	apiConfigs     table[*model.APIConfig]

	routerStatuses       table[*model.RouterStatus]
	loadBalancerStatuses table[*model.LoadBalancerStatus]
	nodeStatuses         table[*model.NodeStatus]

	switches    table[*model.Switch]
	switchPorts table[*model.SwitchPort]

	byKind map[model.Kind]anyTable
}

func newTable[T model.Object](db *statedb.DB, name string, secondary ...statedb.Indexer[T]) table[T] {
	primary := byKey[T]()
	t, err := statedb.NewTableAny(db, name, header[T], row[T], primary, secondary...)
	if err != nil {
		// The definitions are constant, so this can't depend on any input.
		panic("model/state: table " + name + ": " + err.Error())
	}
	return table[T]{t, primary}
}

func header[T model.Object]() []string { return []string{"Key"} }
func row[T model.Object](o T) []string { return []string{o.Key()} }

func newTables(db *statedb.DB) *tables {
	t := &tables{
		networks:             newTable[*model.Network](db, "networks"),
		routers:              newTable[*model.Router](db, "routers", routerByInternal, routerByExternal, routerByPeer),
		ports:                newTable[*model.Port](db, "ports", portByNetwork, portByDevice, portByVM, portByAddress),
		floatingIPs:          newTable[*model.FloatingIP](db, "floating-ips", floatingIPByRouter, floatingIPByFixed),
		loadBalancers:        newTable[*model.LoadBalancer](db, "load-balancers", loadBalancerByNetwork, loadBalancerByVIP),
		securityGroups:       newTable[*model.SecurityGroup](db, "security-groups"),
		nodes:                newTable[*model.Node](db, "nodes", nodeByBridge),
		apiConfigs:           newTable[*model.APIConfig](db, "api-configs"),
		routerStatuses:       newTable[*model.RouterStatus](db, "router-statuses", routerStatusByGateway),
		loadBalancerStatuses: newTable[*model.LoadBalancerStatus](db, "load-balancer-statuses"),
		nodeStatuses:         newTable[*model.NodeStatus](db, "node-statuses"),
		switches:             newTable[*model.Switch](db, "switches"),
		switchPorts:          newTable[*model.SwitchPort](db, "switch-ports", switchPortBySwitch),
	}
	t.byKind = map[model.Kind]anyTable{
		model.KindNetwork:            t.networks,
		model.KindRouter:             t.routers,
		model.KindPort:               t.ports,
		model.KindFloatingIP:         t.floatingIPs,
		model.KindLoadBalancer:       t.loadBalancers,
		model.KindSecurityGroup:      t.securityGroups,
		model.KindNode:               t.nodes,
		model.KindAPIConfig:          t.apiConfigs,
		model.KindRouterStatus:       t.routerStatuses,
		model.KindLoadBalancerStatus: t.loadBalancerStatuses,
		model.KindNodeStatus:         t.nodeStatuses,
		model.KindSwitch:             t.switches,
		model.KindSwitchPort:         t.switchPorts,
	}
	return t
}

// of are the tables of the kinds. Kinds that there are no tables for are passed
// over.
func (t *tables) of(kinds []model.Kind) []statedb.TableMeta {
	out := make([]statedb.TableMeta, 0, len(kinds))
	for _, k := range kinds {
		if table, ok := t.byKind[k]; ok {
			out = append(out, table)
		}
	}
	return out
}
