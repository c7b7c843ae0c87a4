package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/harness"
	"kvnet/integration/server"
)

var (
	which = flag.String("faults", "", `which faults to inject: "all", or an expression that their names match; none: only the short case`)
	long  = flag.Bool("long", false, "hold partitions and outages for a minute")
	kills = flag.Int("kills", 0, "how often to kill the leader, and to hand its work over, for the figures of a fail-over")
)

// servers is the size of a cluster.
const servers = 3

// soon is what a cluster may take to get over a fault that has ended.
const soon = 30 * time.Second

// fault is one case.
type fault struct {
	name string
	// own: the case makes its own cluster, with started, and judges by itself.
	own bool
	// loses: packets may get lost, because a switch that forwards them is part of
	// the fault. Otherwise none may.
	loses bool
	// rewritten are the nodes whose rules may have been written anew.
	rewritten []string
	inject    func(f *field) error
}

// field is where a fault happens.
type field struct {
	*cluster.World
	ctx    context.Context
	leader *cluster.Member
	mark   cluster.Mark
	notes  []string
	// verdict is that of a case with a cluster of its own; nil: it has none.
	verdict *cluster.Verdict
}

// note adds to what the table says about the case.
func (f *field) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// newLeader waits until another server than the leader so far is MASTER of all
// switches, and notes the time that this took.
func (f *field) newLeader() (*cluster.Member, error) {
	took, err := f.WaitMasters(f.ctx, f.mark, f.leader)
	if err != nil {
		return nil, err
	}
	f.note("MASTER of all after %s", took.Round(time.Millisecond))
	return f.WaitLeader(f.ctx, soon)
}

// shared is the world that cases share as long as all goes well.
type shared struct{ world *cluster.World }

// started is a world in which a cluster of the shipped servers does its work.
func started(ctx context.Context, n int, small bool) (w *cluster.World, err error) {
	binary, err := server.Binary()
	if err != nil {
		return nil, err
	}
	return startedWith(ctx, binary, n, small)
}

func startedWith(ctx context.Context, binary string, n int, small bool) (w *cluster.World, err error) {
	if w, err = cluster.NewWorld(ctx, cluster.Config{
		Binary: binary, SmallDisks: small, AuditInterval: 2 * time.Second, FullAuditInterval: 5 * time.Second,
	}); err != nil {
		return nil, err
	}
	if err = w.Found(ctx, n); err == nil {
		err = w.Configure(ctx, w.Members[0])
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// own starts a cluster of n servers for one case alone and calls inject under
// traffic, of which nothing may be lost.
func (f *field) own(n int, small bool, inject func() error) (err error) {
	if f.World, err = started(f.ctx, n, small); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if f.leader, err = f.WaitLeader(f.ctx, soon); err != nil {
		return err
	}
	traffic, err := f.StartTraffic(f.ctx)
	if err != nil {
		return err
	}
	err = inject()
	loss := traffic.Stop()
	f.note("%d packets lost", loss.Lost)
	return errors.Join(err, loss.None())
}

// run runs a case and fills its row.
func (s *shared) run(t *testing.T, c fault) (r row) {
	t.Helper()
	ctx := harness.Context(t, 5*time.Minute)
	r.name = c.name
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	if c.own {
		f := &field{ctx: ctx}
		r.err = c.inject(f)
		r.notes, r.verdict, r.withoutTraffic = f.notes, f.verdict, true
		return r
	}
	if s.world == nil {
		if s.world, r.err = started(ctx, servers, false); r.err != nil {
			return r
		}
	}
	s.skeleton(ctx, c, &r)
	if r.err != nil || t.Failed() {
		s.show(t)
		r.err = errors.Join(r.err, s.close())
	}
	return r
}

func (s *shared) close() error {
	if s.world == nil {
		return nil
	}
	err := s.world.Close()
	s.world = nil
	return err
}

// show logs what the servers have to say.
func (s *shared) show(t *testing.T) {
	for _, m := range s.world.Members {
		t.Logf("end of the log of %s:\n%s", m.Name, m.LogTail())
	}
}

// skeleton is what all cases have in common.
func (s *shared) skeleton(ctx context.Context, c fault, r *row) {
	f := &field{World: s.world, ctx: ctx}
	var before cluster.Record
	if f.leader, r.err = f.WaitLeader(ctx, soon); r.err != nil {
		return
	}
	if before, r.err = f.Record(ctx, f.leader); r.err != nil {
		return
	}
	traffic, err := f.StartTraffic(ctx)
	if err != nil {
		r.err = err
		return
	}
	f.mark = f.Mark()
	err = c.inject(f)
	if err == nil {
		err = f.recover(ctx)
	}
	r.loss, r.notes = traffic.Stop(), f.notes
	verdict := f.Judge(f.mark)
	r.verdict = &verdict
	if r.err = err; err != nil {
		return
	}
	r.err = f.compare(ctx, c, before, r)
}

// recover waits until the cluster is whole again.
func (f *field) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*soon)
	defer cancel()
	if err := f.Connect(ctx); err != nil {
		return err
	}
	if _, err := f.WaitLeader(ctx, soon); err != nil {
		return err
	}
	took, err := f.WaitWrites(ctx, soon)
	if err != nil {
		return err
	}
	if took > time.Second {
		f.note("all take writes %s after it", took.Round(100*time.Millisecond))
	}
	return f.WaitWorking(ctx)
}

// compare holds everything against the record, and proves that new work is done.
func (f *field) compare(ctx context.Context, c fault, before cluster.Record, r *row) error {
	var errs []error
	if !c.loses {
		errs = append(errs, r.loss.None())
	}
	after, err := f.Record(ctx, f.Serving()[0])
	if err != nil {
		return err
	}
	differences := before.Differences(after, c.rewritten...)
	r.differ = len(differences)
	if r.differ > 0 {
		errs = append(errs, fmt.Errorf("the rules differ:\n%s", strings.Join(differences, "\n")))
	}
	if r.verdict.Writers() > 1 {
		errs = append(errs, fmt.Errorf("two servers wrote at once:\n%s", r.verdict))
	}
	for _, m := range f.Serving() {
		errs = append(errs, cluster.Await(ctx, 5*time.Second, "the objects of "+m.Name, func() error { return before.CompareObjects(ctx, m) }))
	}
	if err := f.ProveWork(ctx); err != nil {
		return errors.Join(append(errs, err)...)
	}
	if err := f.WaitQuiet(ctx); err != nil {
		return errors.Join(append(errs, err)...)
	}
	after, err = f.Record(ctx, f.Serving()[0])
	if left := before.Differences(after, f.nodes()...); len(left) > 0 {
		errs = append(errs, fmt.Errorf("after new work the rules differ:\n%s", strings.Join(left, "\n")))
	}
	return errors.Join(append(errs, err)...)
}

// nodes are the names of all nodes.
func (f *field) nodes() []string { return slices.Concat(f.Gateways, f.Workers) }

// chosen are the cases that the flag names.
func chosen[T any](t *testing.T, all []T, name func(T) string) []T {
	t.Helper()
	if *which == "all" {
		return all
	}
	expression, err := regexp.Compile(*which)
	if err != nil {
		t.Fatalf("-faults: %v", err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(c T) bool { return !expression.MatchString(name(c)) })
}

// TestFaults injects the faults that -faults names and prints a table: packets
// lost and the longest time between two answers, rules that differ afterwards,
// servers that a switch obeyed at once, and messages that switches refused.
func TestFaults(t *testing.T) {
	if *which == "" {
		t.Skip("-faults names none")
	}
	cases := chosen(t, faults, func(c fault) string { return c.name })
	if len(cases) == 0 {
		if len(chosen(t, failOvers, func(w failOver) string { return w.name })) == 0 {
			t.Fatalf("-faults %q names no case", *which)
		}
		t.Skip("-faults names none of them")
	}
	harness.NeedRoot(t)
	var s shared
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	var rows []row
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			r := s.run(t, c)
			rows = append(rows, r)
			if r.err != nil {
				t.Error(r.err)
			}
		})
	}
	t.Logf("\n%s", table(rows))
}
