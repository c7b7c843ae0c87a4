package snat

import (
	"net/netip"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
)

// setting is a router of which all is known that SNAT needs.
type setting struct {
	router  *model.Router
	gateway *model.Node
	ip      netip.Addr // what VMs are seen with outside
	peerMAC model.MAC
	zone    uint16
	patch   string    // the gateway's port to the outside
	mac     model.MAC // what the gateway speaks to the outside with
}

// settingOf gathers what SNAT of r needs. If r wants no SNAT, both results are
// nil; if something is missing, the second says what.
func settingOf(db state.Snapshot, r *model.Router) (*setting, []handlers.Waiting) {
	if !r.EnableSNAT || r.External == nil {
		return nil, nil
	}
	var missing []handlers.Waiting
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, handlers.Waitf(format, args...))
		}
	}
	s := &setting{router: r, ip: r.SNATIP()}
	need(s.ip.IsValid(), "external IPv4 address of router %s", r.Name)
	need(r.External.NetworkID != "", "external network of router %s", r.Name)
	need(!r.MAC.IsZero(), "MAC of router %s", r.Name)
	// Clients of ONOS give group addresses too; a rule for one would take
	// everybody's broadcasts.
	need(r.MAC[0]&1 == 0, "unicast MAC of router %s", r.Name)

	st := db.RouterStatus(r.Name)
	if peer := handlers.PeerIP(r); !peer.IsValid() {
		need(false, "IPv4 address of the peer router of router %s", r.Name)
	} else {
		s.peerMAC = decide.PeerMAC(r, st)
		need(!s.peerMAC.IsZero(), "MAC of peer router %s", peer)
	}
	if st != nil {
		s.zone = st.Zone
	}
	need(s.zone != 0, "conntrack zone of router %s", r.Name)

	gw, why := handlers.ElectedGateway(db, r.Name)
	if gw == nil {
		missing = append(missing, why)
	} else {
		s.gateway, s.patch, s.mac = gw, gw.ExternalPatchPort(), handlers.ExternalMAC(db, gw)
		need(s.patch != "", "gatewayBridgeName of node %s", gw.Hostname)
	}
	if len(missing) != 0 {
		return nil, missing
	}
	return s, nil
}
