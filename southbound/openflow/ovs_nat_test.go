package openflow_test

import (
	"testing"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// ovs-ofctl sends a range of one address without its end.
func TestNATOfOneAddressIsTheSameHoweverItWasSent(t *testing.T) {
	ovs, _, s := real(t)
	for _, text := range []string{
		"table=31,priority=1,ip,actions=ct(commit,nat(src=10.0.0.5:1025-65535)),output:1",
		"table=31,priority=2,ip,actions=ct(commit,zone=3,nat(src=10.0.0.5:1025)),output:1",
		"table=31,priority=3,ip,actions=ct(commit,nat(dst=10.0.0.5)),output:1",
	} {
		ovs.Ofctl("add-flow", "br0", text)
		want, err := flow.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := s.Flows(until(t), openflow.FlowQuery{Table: 31})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range entries {
			found = found || e.DecodeErr == nil && e.Priority == want.Priority && e.Rule.SameEffect(want)
		}
		if !found {
			t.Errorf("%s: read %+v", text, entries)
		}
	}
}
