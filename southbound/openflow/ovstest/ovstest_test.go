package ovstest_test

import (
	"net"
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

func TestSwitchesRunBesideEachOther(t *testing.T) {
	for range 3 {
		t.Run("switch", func(t *testing.T) {
			t.Parallel()
			ovs := ovstest.Start(t)
			ovs.AddBridge("ovstest-br", 0x2a, "a")
			if got := ovs.Vsctl("get", "interface", "ovstest-br", "ofport"); got != "65534\n" {
				t.Errorf("the local port has number %q", got)
			}
			if _, err := net.InterfaceByName("ovstest-br"); err == nil {
				t.Error("the bridge is a device of the host")
			}
		})
	}
}
