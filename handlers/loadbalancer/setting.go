package loadbalancer

import (
	"slices"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// setting is a balancer of which all is known that its rules need.
type setting struct {
	lb      *model.LoadBalancer
	network *model.Network
	router  *model.Router
	gateway *model.Node
	group   uint32
	// mark is the metadata that tells packets to this VIP from those to the equal
	// VIP of another router on the same gateway; 0: none is needed.
	mark uint64
	// tag is the VLAN id of the balancer's network; 0: it has no tags.
	tag uint16
}

// settingOf gathers what the rules of lb need. If something is missing, the
// setting is nil and the second result says what.
func settingOf(db state.Snapshot, lb *model.LoadBalancer) (*setting, []handlers.Waiting) {
	var missing []handlers.Waiting
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, handlers.Waitf(format, args...))
		}
	}
	need(lb.VIP.Is4(), "IPv4 address as VIP of balancer %s", lb.Name)
	s := &setting{lb: lb, network: db.Network(lb.NetworkID), router: routerOf(db, lb.NetworkID)}
	if need(s.network != nil, "network %s", lb.NetworkID); s.network != nil {
		var ok bool
		s.tag, ok = handlers.Tag(s.network)
		need(ok, "VLAN id of network %s", s.network.ID)
	}
	if st := db.LoadBalancerStatus(lb.Name); st != nil {
		s.group = st.GroupID
	}
	need(s.group != 0, "group id of balancer %s", lb.Name)
	if need(s.router != nil, "router with network %s", lb.NetworkID); s.router == nil {
		return nil, missing
	}
	need(!s.router.MAC.IsZero(), "MAC of router %s", s.router.Name)
	var why handlers.Waiting
	if s.gateway, why = handlers.ElectedGateway(db, s.router.Name); s.gateway == nil {
		return nil, append(missing, why)
	}
	if sharesVIP(db, lb, s.router.Name) {
		// A router's conntrack zone is a number that no other router has.
		s.mark = uint64(db.RouterStatus(s.router.Name).Zone)
		need(s.mark != 0, "conntrack zone of router %s", s.router.Name)
	}
	if len(missing) != 0 {
		return nil, missing
	}
	return s, nil
}

// routerOf is the router that serves the balancers of a network: of those that
// have it as an internal network, the first by name.
func routerOf(db state.Snapshot, network string) (first *model.Router) {
	if network == "" {
		return nil
	}
	for r := range db.RoutersByInternal(network) {
		if first == nil || r.Name < first.Name {
			first = r
		}
	}
	return first
}

// sharesVIP tells whether a router that comes before this one has a balancer with
// lb's VIP on the same gateway, where packets to the two can't be told apart by
// their addresses (row L-15 of docs/deviations.md).
func sharesVIP(db state.Snapshot, lb *model.LoadBalancer, router string) bool {
	st := db.RouterStatus(router)
	for other := range db.LoadBalancersByVIP(lb.VIP) {
		r := routerOf(db, other.NetworkID)
		if r == nil || r.Name >= router {
			continue
		}
		if o := db.RouterStatus(r.Name); o != nil && o.Gateway == st.Gateway {
			return true
		}
	}
	return false
}

// tags are the VLAN ids with which packets to the VIP or to a floating IP may
// come: those of the router's networks, ascending. untagged tells whether there
// may be packets without a tag too: there may, unless all networks are VLANs.
func tags(db state.Snapshot, r *model.Router) (ids []uint16, untagged bool) {
	add := func(network string) {
		id, ok := handlers.Tag(db.Network(network))
		switch {
		case ok && id == 0:
			untagged = true
		case ok && !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	for _, id := range r.Internal {
		add(id)
	}
	if r.External != nil {
		add(r.External.NetworkID)
	}
	slices.Sort(ids)
	return ids, untagged
}

// arrivals are the rules in the first table of the gateway for packets that match
// m, which go on in the second one without a tag. A tag can be removed only by a
// rule that matches it (row S-3 of docs/deviations.md): each VLAN has a rule, and
// that for all other packets is for untagged ones then.
func (s *setting) arrivals(db state.Snapshot, m flow.Match, actions ...flow.Action) (rules []flow.Rule) {
	if s.mark != 0 {
		actions = append(actions, flow.SetUint{Field: flow.FieldMetadata, Value: s.mark})
	}
	ids, untagged := tags(db, s.router)
	for _, id := range ids {
		m.VLAN = flow.VLANID(id)
		rules = append(rules, s.entry(flow.PriorityLB, m, append([]flow.Action{flow.PopVLAN{}}, actions...)...))
		m.VLAN = flow.NoVLAN
	}
	if untagged {
		rules = append(rules, s.entry(flow.PriorityLB, m, actions...))
	}
	return rules
}

// entry is a rule of the first table that packets to the gateway meet; from it
// they go on in the second one.
func (s *setting) entry(priority uint16, m flow.Match, actions ...flow.Action) flow.Rule {
	return flow.Rule{
		Switch: s.gateway.IntegrationDPID(), Table: flow.TableGwEntry, Priority: priority,
		Match: m, Actions: actions, Goto: flow.TableGwDrop,
	}
}
