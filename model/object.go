package model

// Kind names a kind of entity. The wanted kinds are written by clients, the
// decided kinds by the leader, the observed kinds come from the switches and
// are kept in memory only.
type Kind string

// The kinds of entities.
const (
	KindNetwork       Kind = "network"
	KindRouter        Kind = "router"
	KindPort          Kind = "port"
	KindFloatingIP    Kind = "floating-ip"
	KindLoadBalancer  Kind = "loadbalancer"
	KindSecurityGroup Kind = "security-group"
	KindNode          Kind = "node"
	KindAPIConfig     Kind = "api-config"

	KindRouterStatus       Kind = "router-status"
	KindLoadBalancerStatus Kind = "loadbalancer-status"
	KindNodeStatus         Kind = "node-status"

	KindSwitch     Kind = "switch"
	KindSwitchPort Kind = "switch-port"
)

// WantedKinds are the kinds that clients write, in the order in which a backup
// is best restored.
var WantedKinds = []Kind{KindAPIConfig, KindNode, KindNetwork, KindSecurityGroup, KindRouter, KindPort, KindFloatingIP, KindLoadBalancer}

// DecidedKinds are the kinds that the leader writes.
var DecidedKinds = []Kind{KindRouterStatus, KindLoadBalancerStatus, KindNodeStatus}

// Object is an entity. Objects are immutable once they are shared: whoever
// changes one clones it first.
type Object interface {
	// Kind is the kind of the entity.
	Kind() Kind
	// Key is its name within the kind.
	Key() string
	// Stored gives the revisions of the stored object. They are zero for
	// objects that are not stored.
	Stored() *Meta
}

// Meta holds the revisions that the store gives to an object. They are no part
// of the stored value.
type Meta struct {
	// Created is the revision at which this life of the object began. An object
	// that is deleted and written again has another one.
	Created int64 `json:"-"`
	// Modified is the revision of the last write.
	Modified int64 `json:"-"`
}

// Stored implements Object.
func (m *Meta) Stored() *Meta { return m }

// Change is the step of one entity from one version to the next. Old is nil for
// a new entity, New for one that is gone.
type Change struct {
	Kind Kind
	Key  string
	Old  Object
	New  Object
}

// Versions returns the versions of c that exist, as T. It yields nothing for a
// change of another kind.
func Versions[T Object](c Change) []T {
	var out []T
	if o, ok := c.Old.(T); ok && c.Old != nil {
		out = append(out, o)
	}
	if n, ok := c.New.(T); ok && c.New != nil {
		out = append(out, n)
	}
	return out
}

// OldNew returns both versions of c as T. A version that does not exist is T's
// zero value.
func OldNew[T Object](c Change) (old, new T) {
	old, _ = c.Old.(T)
	new, _ = c.New.(T)
	return old, new
}
