package meet

import (
	"testing"

	"kvnet/handlers"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// claims is a handler with a rule for each owner.
type claims map[flow.Owner]string

func (claims) Name() string { return "claims" }

func (c claims) Owners(state.Snapshot) (owners []flow.Owner) {
	for o := range c {
		owners = append(owners, o)
	}
	return owners
}

func (c claims) Rules(_ state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	r, err := flow.ParseRule(c[o])
	if err != nil {
		panic(err)
	}
	return flow.Set{Rules: []flow.Rule{r}}, nil
}

func (claims) Affected(state.Snapshot, model.Change) []flow.Owner { return nil }

func TestFindAcceptsOnlyWhatMeetsInTheOriginal(t *testing.T) {
	const (
		up      = "table=31,priority=41500,tcp,nw_src=10.0.0.1,tp_src=80,actions=set_field:10.0.0.9->ip_src,goto_table:32"
		down    = "table=32,priority=41500,tcp,nw_dst=10.0.0.9,tp_dst=80,actions=group:1795162113"
		leave   = "table=32,priority=41500,ip,nw_src=10.0.0.9,actions=output:3"
		inside  = "table=31,priority=41500,ip,dl_dst=fa:00:00:00:00:0a,nw_dst=10.0.0.9,actions=goto_table:32"
		outside = "table=31,priority=41500,ip,nw_dst=172.16.0.9,actions=set_field:10.0.0.9->ip_dst,goto_table:32"
		any     = "table=31,priority=41000,arp,arp_tpa=10.0.0.9,arp_op=1,actions=IN_PORT"
		port    = "table=31,priority=41000,arp,in_port=1,arp_tpa=10.0.0.9,arp_op=1,actions=output:3"
		snatU   = "table=31,priority=40500,ip,dl_dst=fa:00:00:00:00:0a,actions=output:3"
		snatD   = "table=31,priority=40500,ip,nw_dst=172.16.0.1,actions=goto_table:32"
	)
	for name, c := range map[string]struct {
		rules             claims
		unknown, accepted int
	}{
		"Lb-U, Lb-FD":            {claims{"lb/a/member/1": up, "lb/b/fip/1": outside}, 0, 1},
		"Lb-U, L-1":              {claims{"lb/a/member/1": up, "lb/b": inside}, 0, 1},
		"Lb-D, Lb-FU":            {claims{"lb/a": down, "lb/b/fip/1": leave}, 0, 1},
		"L-2, L-2":               {claims{"lb/a": any, "lb/b": port}, 0, 1},
		"Snat-U, Snat-D":         {claims{"snat/a": snatU, "snat/b": snatD}, 0, 1},
		"Lb-U, Lb-U":             {claims{"lb/a/member/1": up, "lb/b/member/1": "table=31,priority=41500,tcp,actions=drop"}, 1, 0},
		"Lb-FD, L-1":             {claims{"lb/a/fip/1": "table=31,priority=41500,ip,nw_dst=10.0.0.9,actions=drop", "lb/b": inside}, 1, 0},
		"L-2, Lb-FA":             {claims{"lb/a": any, "lb/b/fip/1": port}, 1, 0},
		"L-2, of a network":      {claims{"lb/a": any, "network/b": port}, 1, 0},
		"of the network handler": {claims{"network/a": any, "network/b": port}, 1, 0},
		"the first of one place": {claims{"lb/a": any, "network/a": any, "lb/b": port}, 0, 1},
		"not the second":         {claims{"a/a": any, "lb/a": any, "lb/b": port}, 1, 0},
		"apart":                  {claims{"lb/a": down, "lb/b": inside, "snat/a": snatU}, 0, 0},
	} {
		unknown, accepted := Find(state.New().Snapshot(), c.rules)
		if len(unknown) != c.unknown || len(accepted) != c.accepted {
			t.Errorf("%s: unknown %v, accepted %v", name, unknown, accepted)
		}
	}
}
