package stats

import (
	"iter"
	"slices"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
)

// router is a router whose SNAT is in force, with its gateway.
type router struct {
	*model.Router
	gateway *model.Node
}

// routers iterates over the routers that have gauges: those with everything that
// SNAT needs.
func routers(db state.Snapshot) iter.Seq[router] {
	return func(yield func(router) bool) {
		for r := range db.Routers() {
			if !r.EnableSNAT || !r.SNATIP().IsValid() || !handlers.PeerIP(r).IsValid() ||
				decide.PeerMAC(r, db.RouterStatus(r.Name)).IsZero() {
				continue
			}
			if gw, _ := handlers.ElectedGateway(db, r.Name); gw != nil && !yield(router{r, gw}) {
				return
			}
		}
	}
}

// floatingIPs iterates over the floating IPs that have gauges: those of VMs.
func floatingIPs(db state.Snapshot) iter.Seq[*model.FloatingIP] {
	return func(yield func(*model.FloatingIP) bool) {
		for f := range db.FloatingIPs() {
			if f.VMName != nil && *f.VMName != "" && !yield(f) {
				return
			}
		}
	}
}

// portOf is the port of the VM that a floating IP stands for; nil if there is none.
func portOf(db state.Snapshot, f *model.FloatingIP) *model.Port {
	for p := range db.PortsByVM(*f.VMName) {
		if !f.FixedIP.IsValid() || f.FixedIP == p.IP {
			return p
		}
	}
	return nil
}

// gateways iterates over the gateways that can serve floating IPs.
func gateways(db state.Snapshot) iter.Seq[*model.Node] {
	return func(yield func(*model.Node) bool) {
		for n := range db.Nodes() {
			if n.Type == model.NodeGateway && n.IntegrationDPID() != 0 && db.NodeState(n.Hostname) == model.NodeComplete && !yield(n) {
				return
			}
		}
	}
}

// switches lists the switches whose counters are needed, each once.
func switches(db state.Snapshot) []model.DPID {
	var out []model.DPID
	for r := range routers(db) {
		out = append(out, r.gateway.IntegrationDPID())
	}
	for range floatingIPs(db) {
		for n := range gateways(db) {
			out = append(out, n.IntegrationDPID())
		}
		break // all share the gateways
	}
	slices.Sort(out)
	return slices.Compact(out)
}
