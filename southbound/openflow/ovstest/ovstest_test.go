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

func TestNothingIsLeftOfASwitch(t *testing.T) {
	var device string
	t.Run("a test with a switch", func(t *testing.T) {
		ovs := ovstest.Start(t)
		ovs.AddBridge("br0", 0x2a)
		device = ovs.Device("br0")
		if _, err := net.InterfaceByName(device); err != nil {
			t.Fatalf("the bridge is no device: %v", err)
		}
	})
	if _, err := net.InterfaceByName(device); err == nil {
		t.Errorf("device %s is left", device)
	}
}
