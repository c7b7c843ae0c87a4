package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/harness"
	"kvnet/integration/relay"
)

// TestFailOver kills the leader as often as -kills says, and has it hand over as
// often, and prints how long it took until all switches had a new MASTER. Nothing
// may be lost or written meanwhile.
func TestFailOver(t *testing.T) {
	if *kills == 0 {
		t.Skip("-kills is 0")
	}
	harness.NeedRoot(t)
	ctx := harness.Context(t, 15*time.Minute)
	w, err := started(ctx, servers, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			(&shared{w}).show(t)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, way := range []struct {
		name string
		end  func(*cluster.Member) error
	}{
		{"leader killed (kill -9) to MASTER of all switches", (*cluster.Member).Kill},
		{"SIGTERM of the leader to another MASTER of all switches", (*cluster.Member).Stop},
	} {
		var took []time.Duration
		for range *kills {
			f := &field{World: w, ctx: ctx}
			d, err := f.failOver(way.end)
			if err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			took = append(took, d)
		}
		slices.Sort(took)
		t.Logf("%s: median %s, worst %s of %d: %v", way.name, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took), took)
	}
}

// failOver ends the leader, waits for the next and brings the old one back.
func (f *field) failOver(end func(*cluster.Member) error) (took time.Duration, err error) {
	if f.leader, err = f.WaitLeader(f.ctx, soon); err != nil {
		return 0, err
	}
	traffic, err := f.StartTraffic(f.ctx)
	if err != nil {
		return 0, err
	}
	f.mark = f.Mark()
	ended := make(chan error, 1)
	go func() { ended <- end(f.leader) }()
	took, err = f.WaitMasters(f.ctx, f.mark, f.leader)
	if stopped := <-ended; err == nil {
		err = stopped
	}
	if err == nil {
		_, err = f.WaitLeader(f.ctx, soon)
	}
	loss := traffic.Stop()
	if err != nil {
		return took, err
	}
	if err := loss.None(); err != nil {
		return took, err
	}
	if written := f.Writes(f.mark); len(written) > 0 {
		return took, fmt.Errorf("a server wrote to the switches:\n%s", relay.Describe(written))
	}
	if err := f.restart(f.leader); err != nil {
		return took, err
	}
	return took, f.Connect(f.ctx)
}
