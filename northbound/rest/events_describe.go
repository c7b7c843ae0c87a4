package rest

import (
	"bytes"
	"encoding/json"
	"log/slog"

	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
	"kvnet/northbound/events"
)

// eventJSON is the data of an event. A version that doesn't exist is null.
type eventJSON struct {
	Kind model.Kind      `json:"kind" swaggertype:"string" enums:"network,port,router,floating-ip,security-group,loadbalancer,node,api-config" example:"router"`
	Key  string          `json:"key" example:"edge"`
	Old  json.RawMessage `json:"old" swaggertype:"object"`
	New  json.RawMessage `json:"new" swaggertype:"object"`
} // @name Event

// describe makes events of changes between two snapshots. What is decided about an
// object is a part of it, as everywhere in REST; what the switches show has no
// events.
func describe(log *slog.Logger, prev, next state.Snapshot, changes []model.Change) []event {
	seen := map[subject]bool{}
	var out []event
	for _, c := range changes {
		x := subject{c.Kind, c.Key}
		switch c.Kind {
		case model.KindRouterStatus:
			x.kind = model.KindRouter
		case model.KindNodeStatus:
			x.kind = model.KindNode
		}
		if seen[x] {
			continue
		}
		seen[x] = true
		old, now := prev.Get(x.kind, x.key), next.Get(x.kind, x.key)
		d := describer{log, prev, next, eventJSON{Kind: x.kind, Key: x.key}}
		if old != nil && now != nil && old.Stored().Created != now.Stored().Created {
			// It was removed and made again.
			out = d.events(out, old, nil)
			out = d.events(out, nil, now)
			continue
		}
		out = d.events(out, old, now)
	}
	return out
}

// describer makes the events of one object.
type describer struct {
	log        *slog.Logger
	prev, next state.Snapshot
	data       eventJSON
}

// events appends the events of the change from old to now.
func (d describer) events(out []event, old, now model.Object) []event {
	names := d.names(old, now)
	if len(names) == 0 {
		return out
	}
	before, err := d.encode(d.prev, old)
	if err != nil {
		return out
	}
	after, err := d.encode(d.next, now)
	if err != nil {
		return out
	}
	if old != nil && now != nil && old.Stored().Modified == now.Stored().Modified && bytes.Equal(before, after) {
		return out // of what is decided, clients don't see everything
	}
	d.data.Old, d.data.New = before, after
	data, err := marshal(d.data)
	if err != nil {
		d.failed(err)
		return out
	}
	for _, n := range names {
		out = append(out, event{string(n), data})
	}
	return out
}

func (d describer) encode(db state.Snapshot, o model.Object) (json.RawMessage, error) {
	b, err := marshal(encodeObject(db, o))
	if err != nil {
		d.failed(err)
	}
	return b, err
}

func (d describer) failed(err error) {
	d.log.Error("an event can't be written", "kind", d.data.Kind, "key", d.data.Key, "error", err)
}

// encodeObject is the form of an object in which its resource is read, without
// secrets; nil for none and for kinds that clients don't see.
func encodeObject(db state.Snapshot, o model.Object) any {
	switch x := o.(type) {
	case *model.Network:
		return encodeNetwork(x)
	case *model.Port:
		return encodePort(x)
	case *model.Router:
		return encodeRouter(db, x)
	case *model.FloatingIP:
		return encodeFloatingIP(x)
	case *model.SecurityGroup:
		return encodeSecurityGroup(x)
	case *model.LoadBalancer:
		return encodeLoadBalancer(x)
	case *model.Node:
		return encodeNode(db, x)
	case *model.APIConfig:
		return encodeAPIConfig(x)
	}
	return nil
}

// names are the names of the change; none for kinds that clients don't see.
func (d describer) names(old, now model.Object) []events.Name {
	switch d.data.Kind {
	case model.KindNetwork:
		return events.OfNetwork(typed[model.Network](old), typed[model.Network](now))
	case model.KindPort:
		return events.OfPort(typed[model.Port](old), typed[model.Port](now))
	case model.KindRouter:
		return events.OfRouter(seenRouter(d.prev, old), seenRouter(d.next, now))
	case model.KindFloatingIP:
		return events.OfFloatingIP(seenFloatingIP(d.next, old), seenFloatingIP(d.next, now))
	case model.KindSecurityGroup:
		return events.OfSecurityGroup(typed[model.SecurityGroup](old), typed[model.SecurityGroup](now))
	case model.KindLoadBalancer:
		return events.OfLoadBalancer(typed[model.LoadBalancer](old), typed[model.LoadBalancer](now))
	case model.KindNode:
		return events.OfNode(seenNode(d.prev, old), seenNode(d.next, now))
	case model.KindAPIConfig:
		return events.OfAPIConfig(typed[model.APIConfig](old), typed[model.APIConfig](now))
	}
	return nil
}

// typed is o as a *T; nil if there is none.
func typed[T any](o model.Object) *T {
	x, _ := any(o).(*T)
	return x
}

func seenRouter(db state.Snapshot, o model.Object) *events.Router {
	r := typed[model.Router](o)
	if r == nil {
		return nil
	}
	return &events.Router{Router: r, Gateway: shownGateway(db, r), PeerMAC: decide.PeerMAC(r, db.RouterStatus(r.Name))}
}

func seenNode(db state.Snapshot, o model.Object) *events.Node {
	n := typed[model.Node](o)
	if n == nil {
		return nil
	}
	return &events.Node{Node: n, State: db.NodeState(n.Hostname)}
}

func seenFloatingIP(db state.Snapshot, o model.Object) *events.FloatingIP {
	i := typed[model.FloatingIP](o)
	if i == nil {
		return nil
	}
	return &events.FloatingIP{FloatingIP: i, Balanced: balanced(db, i)}
}

// balanced tells whether the floating IP is bound to the virtual address of a
// balancer in a network behind its router.
func balanced(db state.Snapshot, i *model.FloatingIP) bool {
	r := db.Router(i.RouterName)
	if r == nil || !i.FixedIP.IsValid() {
		return false
	}
	for lb := range db.LoadBalancersByVIP(i.FixedIP) {
		for _, id := range r.Internal {
			if lb.NetworkID == id {
				return true
			}
		}
	}
	return false
}
