package routerarp

import (
	"net/netip"
	"time"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/decide"
	"kvnet/model/state"
)

// target is whom a router's probe asks, and where. A router that gets another
// target is a new case.
type target struct {
	sw       model.DPID
	port     string
	vlan     uint16     // the tag of the external network; 0: none
	mac      model.MAC  // the asking gateway's
	snat, ip netip.Addr // the asking address and the upstream router's
}

// probe is the search for the MAC of one router's upstream router.
type probe struct {
	router string
	target target
	known  model.MAC // zero: none
	ready  bool      // the switch is connected and has the port

	asked       bool      // since the MAC is unknown
	lastRequest time.Time // zero: none yet
	verifyUntil time.Time // an answer before this time verifies
	learning    bool      // a result is being stored

	due   time.Time // of the next request; zero: none
	index int       // in the schedule; -1: not in it
}

// verifying tells whether an answer at time now was asked for to verify the MAC.
func (p *probe) verifying(now time.Time) bool { return now.Before(p.verifyUntil) }

// look finds what the snapshot says about a router's probe. ok is false if the
// router has nobody to ask or no place to ask from.
func look(db state.Snapshot, router string) (t target, known model.MAC, ready, ok bool) {
	r := db.Router(router)
	if r == nil {
		return target{}, model.MAC{}, false, false
	}
	gw, _ := handlers.ElectedGateway(db, router)
	if gw == nil {
		return target{}, model.MAC{}, false, false
	}
	t = target{sw: gw.IntegrationDPID(), port: gw.ExternalPatchPort(), mac: handlers.ExternalMAC(db, gw), snat: r.SNATIP(), ip: handlers.PeerIP(r)}
	if !t.snat.IsValid() || !t.ip.IsValid() {
		return target{}, model.MAC{}, false, false
	}
	if t.vlan, ok = handlers.Tag(db.Network(r.External.NetworkID)); !ok {
		return target{}, model.MAC{}, false, false
	}
	// The ports of a switch are known as long as it is connected.
	ready = db.SwitchPort(t.sw, t.port) != nil
	return t, decide.PeerMAC(r, db.RouterStatus(router)), ready, true
}

// schedule orders probes by the time of their next request (container/heap).
type schedule []*probe

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	p := x.(*probe)
	p.index = len(*s)
	*s = append(*s, p)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	old := *s
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	p.index = -1
	return p
}
