package packets

import (
	"fmt"
	"net/netip"
	"testing"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
)

// The port to the outside may come after everything that needs it (S-13).
func TestExternalPatchThatComesLate(t *testing.T) {
	w := newWorld(t, lab.FlatConfig{Workers: 1, ControlledPhysical: true, WithoutExternalPatch: true}, harness.Options{})
	w.startVM(vmA)
	w.serve()
	w.createRouter()
	watch(never)
	if err := noRule(isSNAT)(w.flows(lab.Gateway, lab.BrInt)); err != nil {
		t.Errorf("before the port is there: %v", err)
	}
	if err := w.PlugExternal(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.waitSNAT(snatIP)
	if seen, err := probe.AskTCP(w.within(soon), w.Host(vmA.name).NS, 0, w.services.tcp.Address); err != nil || seen.Addr() != snatIP {
		t.Errorf("seen as %s, %v", seen, err)
	}
}

// A switch that answers nothing holds up no other one.
func TestFrozenSwitchHoldsUpNobody(t *testing.T) {
	w := newSNATWorld(t)
	worker := w.Node(lab.Worker(1))
	if err := worker.PauseSwitch(); err != nil {
		t.Fatal(err)
	}
	other := netip.MustParseAddr("172.16.0.101")
	w.updateRouter(map[string]any{"external": map[string]any{"ip": other.String(), "network": "ext-net"}})
	w.waitSNAT(other)
	if err := worker.ResumeSwitch(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, soon, "the worker has its rules", func() error {
		rules, err := worker.Flows(w.ctx, lab.BrInt)
		if err == nil && noRule(func(f ovs.Flow) bool { return f.Table == 0 })(rules) == nil {
			err = fmt.Errorf("table 0 is empty")
		}
		return err
	})
}
