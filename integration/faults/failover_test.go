package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/harness"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// failOver is a way in which a leader ends.
type failOver struct {
	name string
	// goal is what it may take from the end until all switches have a new MASTER.
	goal time.Duration
	// together: the leader of the store's engine ends with it. It takes servers of
	// a test build that keep both together.
	together bool
	prepare  func(*field) error // before the time begins; may be nil
	end      func(*field) error
}

var failOvers = []failOver{
	{name: "fail-over: leader killed", goal: 500 * time.Millisecond, end: killLeader},
	{name: "fail-over: both leaders killed", goal: time.Second, together: true, end: killLeader},
	{name: "fail-over: power failure", goal: 1500 * time.Millisecond, prepare: prepareFilter, end: cutPower},
	{name: "fail-over: hand-over", goal: 50 * time.Millisecond, end: handOver},
}

func killLeader(f *field) error { return f.leader.Kill() }

func handOver(f *field) error { return f.leader.Stop() }

func prepareFilter(f *field) error { return f.leader.Filter(f.ctx) }

// cutPower ends the leader so that nobody hears of it.
func cutPower(f *field) error {
	return errors.Join(f.Silence(f.ctx, f.leader), f.leader.Kill())
}

// times are those of one way.
type times struct {
	way   failOver
	took  []time.Duration
	found []time.Duration // until the gossip counted the leader as failed
	apart time.Duration   // the longest wait for the two leaders to be as they should
	err   error
}

func (t times) String() string {
	if len(t.took) == 0 {
		return fmt.Sprintf("%-32s %3d  FAILED", t.way.name, 0)
	}
	verdict := "reached"
	if slices.Max(t.took) > t.way.goal {
		verdict = "MISSED"
	}
	line := fmt.Sprintf("%-32s %3d %8s %8s %8s %-7s", t.way.name, len(t.took), median(t.took), slices.Max(t.took).Round(time.Millisecond), t.way.goal, verdict)
	if len(t.found) > 0 {
		line += fmt.Sprintf("  counts as failed after %s, worst %s;", median(t.found), slices.Max(t.found).Round(time.Millisecond))
	}
	return fmt.Sprintf("%s  store's leader in its place after %s at most", line, t.apart.Round(time.Millisecond))
}

func median(of []time.Duration) time.Duration {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2].Round(time.Millisecond)
}

// TestFailOver ends the leader as often as -kills says in each way that -faults
// names, and prints how long it took until all switches had a new MASTER. Nothing may
// be lost or written meanwhile.
func TestFailOver(t *testing.T) {
	ways := failOvers
	if *which != "" {
		ways = chosen(t, ways, func(w failOver) string { return w.name })
	}
	if *kills == 0 || len(ways) == 0 {
		t.Skip("-kills is 0, or -faults names none of them")
	}
	harness.NeedRoot(t)
	table := []string{fmt.Sprintf("%-32s %3s %8s %8s %8s", "", "n", "median", "worst", "goal")}
	for _, way := range ways {
		t.Run(strings.ReplaceAll(way.name, " ", "-"), func(t *testing.T) {
			m := measure(t, way)
			table = append(table, m.String())
			if m.err != nil {
				t.Error(m.err)
			}
		})
	}
	t.Logf("\n%s", strings.Join(table, "\n"))
}

func measure(t *testing.T, way failOver) (m times) {
	t.Helper()
	m.way = way
	find := server.Binary
	if way.together {
		find = server.TogetherBinary
	}
	binary, err := find()
	if err != nil {
		return times{way: way, err: err}
	}
	ctx := harness.Context(t, 15*time.Minute)
	w, err := startedWith(ctx, binary, servers, false)
	if err != nil {
		return times{way: way, err: err}
	}
	for range *kills {
		f := &field{World: w, ctx: ctx}
		if m.err = f.failOver(&m); m.err != nil {
			(&shared{w}).show(t)
			break
		}
	}
	m.err = errors.Join(m.err, w.Close())
	return m
}

// failOver ends the leader, waits for the next and brings the old one back.
func (f *field) failOver(m *times) (err error) {
	if f.leader, err = f.WaitLeader(f.ctx, soon); err != nil {
		return err
	}
	if err := f.placeStore(m); err != nil {
		return err
	}
	traffic, err := f.StartTraffic(f.ctx)
	if err != nil {
		return err
	}
	if m.way.prepare != nil {
		err = m.way.prepare(f)
	}
	if err == nil {
		err = f.time(m)
	}
	loss := traffic.Stop()
	if err != nil {
		return err
	}
	if err := loss.None(); err != nil {
		return err
	}
	if written := f.Writes(f.mark); len(written) > 0 {
		return fmt.Errorf("a server wrote to the switches:\n%s", relay.Describe(written))
	}
	if err := f.Heal(f.ctx); err != nil {
		return err
	}
	if err := f.restart(f.leader); err != nil {
		return err
	}
	return f.Connect(f.ctx)
}

// placeStore waits until the leader of the store's engine runs where the way wants
// it: in the leader, or elsewhere.
func (f *field) placeStore(m *times) error {
	began := time.Now()
	err := cluster.Await(f.ctx, soon, "the store's leader in its place", func() error {
		here, err := f.leader.StoreLeads(f.ctx)
		if err == nil && here != m.way.together {
			err = fmt.Errorf("it runs in %s: %t", f.leader.Name, here)
		}
		return err
	})
	m.apart = max(m.apart, time.Since(began))
	return err
}

// time ends the leader and waits until all switches have another MASTER.
func (f *field) time(m *times) error {
	f.mark = f.Mark()
	ended := make(chan error, 1)
	go func() { ended <- m.way.end(f) }()
	took, err := f.WaitMasters(f.ctx, f.mark, f.leader)
	if stopped := <-ended; err == nil {
		err = stopped
	}
	if err == nil {
		_, err = f.WaitLeader(f.ctx, soon)
	}
	if err != nil {
		return err
	}
	m.took = append(m.took, took)
	if m.way.prepare == nil { // its end is heard of
		return nil
	}
	at, err := f.Failed(f.mark, f.leader)
	m.found = append(m.found, at.Sub(f.mark.Time))
	return err
}
