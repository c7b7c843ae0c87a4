package ovstest_test

import (
	"testing"

	"kvnet/southbound/openflow/ovstest"
)

func TestBridgeHasItsPortsWithTheirNumbers(t *testing.T) {
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x2a, "a", "b")
	if got := ovs.Vsctl("get", "interface", "b", "ofport"); got != "2\n" {
		t.Fatalf("port b has number %q", got)
	}
	if flows := ovs.Flows("br0"); len(flows) != 0 {
		t.Fatalf("a new bridge has rules: %q", flows)
	}
}
