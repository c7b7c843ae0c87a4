package packets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/probe"
	"kvnet/integration/relay"
)

// newRestartWorld is a gateway and a worker whose only bridges with a controller
// are br-int and br-tun: four switches.
func newRestartWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, lab.FlatConfig{Workers: 1}, harness.Options{})
	w.connect(vmA)
	if n := len(w.Controlled); n != 4 {
		t.Fatalf("%d bridges have a controller, want 4", n)
	}
	return w
}

// pulse is the time between two questions of a traffic.
const pulse = 10 * time.Millisecond

// traffic is what goes on while the server is away.
type traffic struct{ ping, udp *probe.Stream }

func (w *world) startTraffic(v vm) traffic {
	w.t.Helper()
	ping, err := probe.StartPing(w.Host(v.name).NS, internet, pulse)
	if err != nil {
		w.t.Fatal(err)
	}
	udp, err := probe.StartUDP(w.Host(v.name).NS, w.services.udp.Address, pulse)
	if err != nil {
		w.t.Fatal(err)
	}
	harness.Eventually(w.t, soon, "traffic flows", func() error {
		if ping.Answered() < 10 || udp.Answered() < 10 {
			return fmt.Errorf("%d pings and %d datagrams are answered", ping.Answered(), udp.Answered())
		}
		return nil
	})
	return traffic{ping, udp}
}

// expectNoLoss ends the traffic.
func (x traffic) expectNoLoss(t *testing.T) {
	t.Helper()
	for name, stream := range map[string]*probe.Stream{"ping": x.ping, "UDP": x.udp} {
		if r := stream.Stop(); len(r.Lost) > 0 || r.Err != nil {
			t.Errorf("%s lost packets: %s", name, r)
		}
	}
}

// rulesByBridge are the rules of all bridges that have a controller.
func (w *world) rulesByBridge() map[string][]ovs.Flow {
	w.t.Helper()
	out := map[string][]ovs.Flow{}
	for _, b := range w.Controlled {
		out[b.Name()] = w.flows(b.Node, b.Bridge)
	}
	return out
}

// expectUntouched checks that each rule is there as before and as old as it has to
// be.
func expectUntouched(t *testing.T, before, after map[string][]ovs.Flow, passed time.Duration) {
	t.Helper()
	for name, rules := range before {
		left := map[string]ovs.Flow{}
		for _, f := range after[name] {
			left[f.String()] = f
		}
		for _, old := range rules {
			now, ok := left[old.String()]
			delete(left, old.String())
			switch {
			case !ok:
				t.Errorf("%s: gone: %s", name, old)
			case now.Duration < old.Duration+passed:
				t.Errorf("%s: was %s old, is %s old %s later: %s", name, old.Duration, now.Duration, passed, old)
			case now.Cookie != old.Cookie:
				t.Errorf("%s: cookie %#x became %#x: %s", name, old.Cookie, now.Cookie, old)
			}
		}
		for _, f := range left {
			t.Errorf("%s: new: %s", name, f)
		}
	}
}

// letIn has switches knock at once and lets them in. The door stays closed until
// they have knocked, so that the server sees one connection of each.
func (w *world) letIn(names ...string) {
	w.t.Helper()
	for _, b := range w.Controlled {
		if !slices.Contains(names, b.Name()) {
			continue
		}
		if err := w.Node(b.Node).Reconnect(w.ctx, b.Bridge); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, name := range names {
		harness.Eventually(w.t, soon, name+" knocks", func() error {
			if n := w.Relay.Waiting(name); n != 1 {
				return fmt.Errorf("%d connections wait", n)
			}
			return nil
		})
	}
	w.Relay.Admit(names...)
}

// names are the names of all switches.
func (w *world) names() []string {
	var names []string
	for _, b := range w.Controlled {
		names = append(names, b.Name())
	}
	return names
}

// restart kills the server under traffic and starts it again; admit lets the
// switches in. The switches must not notice. It returns when all are connected
// and stay so for a while.
func (w *world) restart(t *testing.T, admit func(), rest time.Duration) {
	t.Helper()
	before, began, mark := w.rulesByBridge(), time.Now(), w.Relay.Mark()
	traffic := w.startTraffic(vmA)
	// The server must not live to see its switches go.
	if err := w.Kill(); err != nil {
		t.Fatal(err)
	}
	w.Relay.Hold()
	if err := w.Server.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	admit()
	if err := w.Relay.WaitConnected(w.within(soon)); err != nil {
		t.Fatal(err)
	}
	w.waitMaster(t)
	watch(rest)
	// The clock of the test begins before the rules were read, that of the
	// switches counts in milliseconds.
	passed := time.Since(began) - 100*time.Millisecond
	expectUntouched(t, before, w.rulesByBridge(), passed)
	if written := w.Relay.Writes(mark); len(written) > 0 {
		t.Errorf("the server wrote to the switches:\n%s", relay.Describe(written))
	}
	traffic.expectNoLoss(t)
}

// waitMaster waits until the server is MASTER of all switches.
func (w *world) waitMaster(t *testing.T) {
	t.Helper()
	harness.Eventually(t, soon, "MASTER of all switches", func() error {
		var answer struct {
			Switches []struct{ ID, Role string } `json:"switches"`
		}
		if err := w.Read(w.ctx, "/kvnet/v1/switches", &answer); err != nil {
			return err
		}
		master := 0
		for _, s := range answer.Switches {
			if s.Role == "MASTER" {
				master++
			}
		}
		if master != len(w.Controlled) {
			return fmt.Errorf("of %d: %+v", master, answer.Switches)
		}
		return nil
	})
}

// kill -9 of the server and a new start, all switches let in at once: no packet is
// lost, nothing is written, no rule is young again, also when the time is over
// after which a new leader stops waiting for what is unknown (10 s).
func TestKillWithSwitchesBackAtOnce(t *testing.T) {
	w := newRestartWorld(t)
	w.restart(t, func() { w.letIn(w.names()...) }, 12*time.Second)
}

// The same with the switches let in one by one, 1 s apart, in every order.
func TestKillWithSwitchesBackInEveryOrder(t *testing.T) {
	w := newRestartWorld(t)
	for _, order := range permutations(w.names()) {
		t.Run(strings.NewReplacer("/", ".").Replace(strings.Join(order, " ")), func(t *testing.T) {
			w.restart(t, func() {
				for i, name := range order {
					if i > 0 {
						time.Sleep(time.Second)
					}
					w.letIn(name)
				}
			}, 500*time.Millisecond)
		})
	}
}

func permutations(items []string) [][]string {
	if len(items) <= 1 {
		return [][]string{items}
	}
	var out [][]string
	for i, first := range items {
		rest := append(append([]string(nil), items[:i]...), items[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]string{first}, p...))
		}
	}
	return out
}
