package lab_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/netns"
)

// A lab without a controller forwards nothing through br-int; with one rule that
// says NORMAL a VM reaches the outside, which shows that all wires are right.
func TestFlatLabForwardsAsItsRulesSay(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f, err := lab.NewFlat(ctx, lab.FlatConfig{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	vm, err := f.AddVM(ctx, "w2", lab.HostConfig{Name: "vm1", MAC: "fa:16:3e:00:00:31", Address: "172.16.0.31/24", Gateway: lab.PeerIP})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := vm.Command(ctx, "ping", "-c1", "-W1", lab.PeerIP).CombinedOutput(); err == nil {
		t.Fatalf("bridges without rules forward:\n%s", out)
	}
	for _, node := range []string{"gw1", "w2"} {
		if _, err := f.Node(node).Ofctl(ctx, nil, "add-flow", lab.BrInt, "actions=NORMAL"); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := vm.Command(ctx, "ping", "-c2", "-W2", lab.InternetIP).CombinedOutput(); err != nil {
		t.Fatalf("no answer through all bridges: %v\n%s", err, out)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := lab.New()
	if err != nil {
		t.Fatal(err)
	}
	n, err := l.AddNode(ctx, "n1")
	if err != nil {
		t.Fatal(err)
	}
	namespace := n.NS.Name
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := netns.Names(namespace); err != nil || len(left) > 0 {
		t.Errorf("namespaces left: %v, %v", left, err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commands {
		// A process that ends while this reads is none that is left.
		if command, err := os.ReadFile(file); err == nil && strings.Contains(string(command), l.Dir+"/") {
			t.Errorf("process left: %s: %q", file, command)
		}
	}
}
