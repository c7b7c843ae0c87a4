package rest

import (
	"encoding/json"
	"reflect"

	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
)

// routerJSON is ONOS's form of a router. ONOS writes `external` as a list and
// reads it as one object; kvnet reads both (row C1 of the quirks).
type routerJSON struct {
	Name        *string `json:"name" validate:"required,key" example:"edge" minLength:"1" maxLength:"4096"`
	EnableSNAT  *bool   `json:"enableSnat" example:"true"`
	MAC         *string `json:"mac" validate:"required,mac48" example:"02:00:00:00:01:01" format:"mac"`
	Description *string `json:"description,omitempty" example:"the way out"`
	// The networkIds of the networks that the router connects.
	Internal []string `json:"internal,omitempty" example:"net-1"`
	// The router's address in the network outside: at most one. It is written as a
	// list; in a body one object {"ip":…,"network":…} in the place of the list is read
	// as well, which is the form that ONOS wants.
	External externalList `json:"external,omitempty" validate:"dive"`
	// The next router outside.
	Peer *peerJSON `json:"peerRouter,omitempty"`
	// The hostname of the gateway node. kvnet elects one if it is left out.
	Gateway *string `json:"gateway,omitempty" example:"gateway-1"`
} // @name KubevirtRouter

type externalJSON struct {
	IP *string `json:"ip" validate:"required,host" example:"203.0.113.10" format:"ip"`
	// The networkId of the network outside.
	Network *string `json:"network" validate:"required" example:"outside"`
} // @name KubevirtRouterExternal

// externalList is read from a list or from one object.
type externalList []externalJSON

type peerJSON struct {
	// Without it the whole peer is ignored.
	IP *string `json:"ip" validate:"omitempty,host" example:"203.0.113.1" format:"ip"`
	// kvnet asks for it by ARP if it is left out.
	MAC *string `json:"mac,omitempty" validate:"omitempty,mac48" example:"02:00:00:00:01:FE" format:"mac"`
} // @name KubevirtPeerRouter

func (l *externalList) decode(d *decoder, raw json.RawMessage, path string) {
	if raw[0] == '{' {
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var list []externalJSON
	d.value(raw, reflect.ValueOf(&list).Elem(), path, false)
	*l = list
}

func (*routerJSON) entity() string { return "KubevirtRouter" }

func (r *routerJSON) check(f *faults) {
	if *r.Name == "" {
		f.add("name is empty: Kubevirt router name cannot be null")
	}
	if len(r.External) > 1 {
		f.add("external has %d entries, a router has one external network", len(r.External))
	}
}

func (r *routerJSON) key() string { return *r.Name }

// apply makes the router that is stored. What a client leaves out of a PUT of
// what the leader decides (the gateway, the peer's MAC) stays as it is.
func (r *routerJSON) apply(before model.Object) model.Object {
	old, _ := before.(*model.Router)
	if old == nil {
		old = &model.Router{}
	}
	out := &model.Router{
		Name:         *r.Name,
		Description:  r.Description,
		EnableSNAT:   r.EnableSNAT != nil && *r.EnableSNAT,
		MAC:          mac(r.MAC),
		Internal:     sortedSet(r.Internal),
		Gateway:      old.Gateway,
		GatewayWrite: old.GatewayWrite,
		Peer:         r.peer(old.Peer),
	}
	if len(r.External) == 1 {
		out.External = &model.External{IPText: *r.External[0].IP, NetworkID: *r.External[0].Network}
	}
	if text(r.Gateway) != "" {
		out.Gateway = *r.Gateway
		out.GatewayWrite++
	}
	return out
}

// peer is the upstream router that is stored. Without an address ONOS ignores
// the whole peer.
func (r *routerJSON) peer(old *model.PeerRouter) *model.PeerRouter {
	if r.Peer == nil || r.Peer.IP == nil {
		return nil
	}
	if old == nil {
		old = &model.PeerRouter{}
	}
	out := &model.PeerRouter{IP: address(r.Peer.IP), MAC: mac(r.Peer.MAC), Write: old.Write + 1}
	if r.Peer.MAC == nil && out.IP == old.IP {
		out.MAC, out.Write = old.MAC, old.Write
	}
	return out
}

// encodeRouter writes a router with what is decided about it.
func encodeRouter(db state.Snapshot, r *model.Router) *routerJSON {
	out := &routerJSON{
		Name:        &r.Name,
		EnableSNAT:  &r.EnableSNAT,
		MAC:         upperMAC(r.MAC),
		Description: r.Description,
		Internal:    r.Internal,
		Gateway:     textOrNil(shownGateway(db, r)),
	}
	if r.External != nil {
		out.External = externalList{{&r.External.IPText, &r.External.NetworkID}}
	}
	if r.Peer != nil {
		out.Peer = &peerJSON{addressText(r.Peer.IP), upperMAC(decide.PeerMAC(r, db.RouterStatus(r.Name)))}
	}
	return out
}

// shownGateway is the gateway that clients see: a written one that can serve
// counts at once, before the leader has stored it; else the decided one; else the
// written text.
func shownGateway(db state.Snapshot, r *model.Router) string {
	st := db.RouterStatus(r.Name)
	if st == nil || st.GatewayWrite != r.GatewayWrite {
		n := db.Node(r.Gateway)
		if n != nil && n.Type == model.NodeGateway && db.NodeState(n.Hostname) == model.NodeComplete {
			return r.Gateway
		}
	}
	if st != nil && st.Gateway != "" {
		return st.Gateway
	}
	return r.Gateway
}
