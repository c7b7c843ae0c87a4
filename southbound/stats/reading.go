package stats

import (
	"net/netip"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// counter is what rules have counted.
type counter struct{ packets, bytes uint64 }

// reading holds the counters of a gateway's rules that translate addresses, by
// what the rules match. Several rules of one match field are summed up: a router
// with VLAN networks has a rule for each.
type reading struct {
	snatUp    map[model.MAC]counter  // to the router's MAC
	snatDown  map[netip.Addr]counter // to the SNAT address
	floatUp   map[model.MAC]counter  // from the VM's MAC
	floatDown map[netip.Addr]counter // to the floating IP
}

// query selects the rules of a reading.
var query = openflow.FlowQuery{Table: flow.TableGwEntry, Cookie: flow.CookieMark, Mask: flow.CookieMask}

func readingOf(entries []openflow.FlowEntry) reading {
	r := reading{map[model.MAC]counter{}, map[netip.Addr]counter{}, map[model.MAC]counter{}, map[netip.Addr]counter{}}
	for i := range entries {
		e := &entries[i]
		m := &e.Rule.Match
		if e.DecodeErr != nil || e.Table != flow.TableGwEntry || m.EthType != flow.EthTypeIPv4 {
			continue
		}
		switch e.Priority {
		case flow.PriorityStatefulSNAT:
			if !m.EthDst.IsZero() {
				add(r.snatUp, m.EthDst, e)
			} else if m.IPDst.IsSingleIP() {
				add(r.snatDown, m.IPDst.Addr(), e)
			}
		case flow.PriorityFloatingUpstream:
			if !m.EthSrc.IsZero() {
				add(r.floatUp, m.EthSrc, e)
			}
		case flow.PriorityFloatingDownstream:
			if m.IPDst.IsSingleIP() {
				add(r.floatDown, m.IPDst.Addr(), e)
			}
		}
	}
	return r
}

func add[K comparable](m map[K]counter, k K, e *openflow.FlowEntry) {
	c := m[k]
	m[k] = counter{c.packets + e.Packets, c.bytes + e.Bytes}
}
