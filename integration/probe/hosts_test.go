package probe_test

import (
	"context"
	"testing"

	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/model"
)

var (
	macA = model.MAC{0x02, 0, 0, 0, 0, 1}
	macB = model.MAC{0x02, 0, 0, 0, 0, 2}
)

func twoHosts(ctx context.Context, t *testing.T, l *lab.Lab) (a, b *lab.Host) {
	t.Helper()
	n, err := l.AddNode(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.AddBridge(ctx, ovs.Bridge{Name: "br0"}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []struct {
		host    **lab.Host
		name    string
		mac     model.MAC
		address string
	}{{&a, "a", macA, "192.168.7.1/24"}, {&b, "b", macB, "192.168.7.2/24"}} {
		if *h.host, err = l.AddHost(ctx, n, "br0", lab.HostConfig{Name: h.name, MAC: h.mac.String(), Address: h.address}); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}
