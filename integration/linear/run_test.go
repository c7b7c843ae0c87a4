package linear

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/server"
)

var (
	duration = flag.Duration("linear", 0, "how long clients and faults go on; 0: not at all")
	seed     = flag.Uint64("seed", 0, "makes the same faults and operations again, at other times; 0: by chance")
)

// checkTime is what the check of one key may take.
const checkTime = 30 * time.Second

// Whatever happens to servers, reads with consistent=true and writes are as those of
// one server that never fails. What plain reads show that is old is reported.
func TestLinearizable(t *testing.T) {
	if *duration == 0 {
		t.Skip("-linear gives no time")
	}
	harness.NeedRoot(t)
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	ctx := harness.Context(t, *duration+5*time.Minute)
	c := found(ctx, t)
	l := &load{history: NewHistory(), keys: NewKeys(keys), members: c.Members}
	trouble := &trouble{Cluster: c, random: rand.New(rand.NewPCG(*seed, clients)), history: l.history, victims: map[string]int{}}

	during, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(during, *seed)
	}()
	err := trouble.run(during)
	cancel()
	<-done
	t.Logf("\n%s", flow{l.history.Operations(), trouble.spans, *duration})
	t.Logf("victims: %v", trouble.victims)
	if err == nil {
		err = l.readAll(ctx)
	}
	if err := errors.Join(err, l.err()); err != nil {
		t.Error(err)
	}
	judge(t, l.history)
	if t.Failed() {
		for _, m := range c.Members {
			t.Logf("end of the log of %s:\n%s", m.Name, m.LogTail())
		}
	}
}

// found starts three servers without switches, and ends them with the test.
func found(ctx context.Context, t *testing.T) *cluster.Cluster {
	t.Helper()
	binary, err := server.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := harness.Lab(t)
	c, err := cluster.New(ctx, &lab.Flat{Lab: l}, cluster.Config{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Found(ctx, 3); err != nil {
		t.Fatal(err)
	}
	return c
}

// judge checks the history for each kind of read.
func judge(t *testing.T, h *History) {
	t.Helper()
	// Kept only if there is something to see.
	dir, err := os.MkdirTemp("", "kvnet-linear-")
	if err != nil {
		t.Fatal(err)
	}
	history := h.Operations()
	strict, err := Check(Of(history, true), checkTime, dir)
	if err != nil {
		t.Error(err)
	}
	t.Logf("writes and consistent reads: %s", strict)
	plain, err := Check(Of(history, false), checkTime, "")
	if err != nil {
		t.Error(err)
	}
	t.Logf("writes and plain reads, which may be old: %s", plain)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("%d operations in all, without an answer %d of the writes; this process has used %d MiB at most", len(history), open(history), memory.Sys>>20)
	if len(strict.Violations) == 0 {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	} else {
		t.Errorf("the operations on %v fit no order; pictures are in %s", strict.Violations, dir)
	}
	if undecided := slices.Concat(strict.Undecided, plain.Undecided); len(undecided) > 0 {
		t.Errorf("the time was too short to judge the operations on %v", undecided)
	}
	if strict.Operations == 0 {
		t.Error("no operation was recorded")
	}
	// Plain reads are old now and then, for some milliseconds at least. If that
	// doesn't show, the clients are too slow or too few to see anything.
	if len(plain.Violations) == 0 {
		t.Error("not even plain reads were ever old, so this run would have missed old consistent ones too")
	}
}
