package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kvnet/internal/pause"
	"kvnet/model"
)

// steady writes by several clients until its standard input ends, and then waits
// a while to be killed. Each client makes networks, deletes every second one again and
// counts in one of its own. It says what was acknowledged and what was not,
// "leads" whenever etcd's leader has come here, and "done".
func steady(s *Store, name string, say func(format string, args ...any)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop, end := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent, too
		end()
	}()
	go func() {
		for leads := false; pause.For(ctx, 5*time.Millisecond); {
			h, _ := s.Health()
			if h.Leads && !leads {
				say("leads")
			}
			leads = h.Leads
		}
	}()
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() { steadyClient(stop, s, fmt.Sprintf("%s-%d-%d", name, os.Getpid(), w), say) })
	}
	work.Wait()
	say("done")
	pause.For(ctx, time.Minute)
}

func steadyClient(stop context.Context, s *Store, client string, say func(format string, args ...any)) {
	ctx := context.WithoutCancel(stop)
	done := func(what, id string, err error) bool {
		if err != nil {
			say("failed %s %s: %v", what, id, err)
			return false
		}
		say("%s %s", what, id)
		return true
	}
	// A server that was just started again may fail.
	counter := client + "-counter"
	for made := false; !made; {
		if stop.Err() != nil {
			return
		}
		_, err := s.Create(ctx, network(counter))
		if made = done("create", counter, err) || errors.Is(err, ErrExists); !made {
			pause.For(stop, 10*time.Millisecond)
		}
	}
	for i := 0; stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", client, i)
		_, err := s.Create(ctx, network(id))
		if done("create", id, err) && i%2 == 0 {
			_, err = s.Delete(ctx, model.KindNetwork, id)
			done("delete", id, err)
		}
		_, err = s.Update(ctx, model.KindNetwork, counter, func(o model.Object) (model.Object, error) {
			o.(*model.Network).MTU++
			return o, nil
		})
		done("count", counter, err)
	}
}

// story is what the members have said.
type story struct {
	t *testing.T

	mu     sync.Mutex
	lead   string           // where etcd's leader was seen last
	lost   string           // the member that is not there
	failed int              // how many writes of the others have failed
	there  map[string]bool  // by id: the last acknowledged write made or deleted it
	count  map[string]int32 // acknowledged, by counter
	unsure map[string]bool  // ids of a write that has failed or whose writer was killed
	recent map[string]string
	writes map[string]int // acknowledged, by member
	done   int
	gap    time.Duration // the longest between two acknowledged writes of those that may not fail
	last   time.Time
}

func newStory(t *testing.T) *story {
	return &story{
		t: t, there: map[string]bool{}, count: map[string]int32{}, unsure: map[string]bool{},
		recent: map[string]string{}, writes: map[string]int{},
	}
}

// teller is a member that is listened to.
type teller struct {
	*process
	heard sync.WaitGroup
}

// start starts a member and hears it until it ends.
func (s *story) start(c Config) *teller {
	s.t.Helper()
	p := &teller{process: startMember(s.t, c, true)}
	p.heard.Go(func() {
		for line := range p.lines {
			s.hear(c.Name, line)
		}
	})
	return p
}

// end kills the member and hears all that it has said.
func (p *teller) end() {
	p.kill()
	p.heard.Wait()
	_ = p.cmd.Wait() // "signal: killed" is what we want
}

func (s *story) hear(name, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	id, _, _ := strings.Cut(rest, ":")
	switch what {
	case "leads":
		s.lead = name
		return
	case "done":
		s.done++
		return
	case "create", "delete":
		s.there[id] = what == "create"
		s.recent[id[:strings.LastIndexByte(id, '-')]] = id
	case "count":
		s.count[id]++
	case "error":
		s.t.Errorf("%s does not start: %s", name, rest)
		return
	default:
		if _, id, ok := strings.Cut(id, " "); ok {
			s.unsure[id] = true
		}
		s.t.Logf("%s: %s", name, line)
		if name != s.lost {
			s.failed++
		}
		return
	}
	s.writes[name]++
	if now := time.Now(); name != s.lost {
		if !s.last.IsZero() {
			s.gap = max(s.gap, now.Sub(s.last))
		}
		s.last = now
	}
}

// lose tells which member leads etcd. It may fail from now on, the others may not.
func (s *story) lose() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost, s.gap, s.failed = s.lead, 0, 0
	return s.lead
}

// killed is called when all was heard of the lost member.
func (s *story) killed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for client, id := range s.recent {
		if strings.HasPrefix(client, s.lost+"-") {
			s.unsure[id], s.unsure[client+"-counter"] = true, true
		}
	}
}

// found ends the time in which one may fail, and returns the longest gap in it and
// how many writes of the others have failed.
func (s *story) found() (gap time.Duration, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = ""
	return s.gap, s.failed
}

// more waits until each of the members has written n times more.
func (s *story) more(n int, names ...string) {
	s.t.Helper()
	goal := map[string]int{}
	reached := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(names, func(m string) bool {
			if goal[m] == 0 {
				goal[m] = s.writes[m] + n
			}
			return s.writes[m] < goal[m]
		})
	}
	until(s.t, fmt.Sprintf("%q go on writing", names), reached)
}

// check compares what is stored with what was said.
func (s *story) check(f *fixture) {
	s.t.Helper()
	rev, err := f.Linearizable(ctx(s.t))
	snap := f.at(rev, err)
	for id, there := range s.there {
		if !s.unsure[id] && there != (snap.Network(id) != nil) {
			s.t.Errorf("network %q: acknowledged as there: %v, but it is not so", id, there)
		}
	}
	for id, n := range s.count {
		if o := snap.Network(id); o == nil || o.MTU < n || !s.unsure[id] && o.MTU > n {
			s.t.Errorf("counter %q: %d acknowledged, but it is %+v", id, n, o)
		}
	}
	s.t.Logf("%d networks, %d counters", len(s.there), len(s.count))
}

// On a machine that starves the members, elections come one after the other, and no
// patience is enough. So there have to be enough rounds in which no write failed,
// and not only such.
func TestNoWriteFailsWhenTheStoreLosesItsLeader(t *testing.T) {
	const rounds, most = 5, 15
	names := []string{"a", "b", "c"}
	for _, kill := range []bool{true, false} {
		t.Run(map[bool]string{true: "killed", false: "stopped"}[kill], func(t *testing.T) {
			cs, ps, s := planned(t, names...), map[string]*teller{}, newStory(t)
			for n, c := range cs {
				ps[n] = s.start(c)
			}
			s.more(20, names...)
			var gaps []time.Duration
			for tried := 0; len(gaps) < rounds; tried++ {
				if tried == most {
					t.Fatalf("writes failed in %d of %d rounds", most-len(gaps), most)
				}
				lost := s.lose()
				others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == lost })
				p := ps[lost]
				if kill {
					p.kill()
				} else if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				s.more(100, others...)
				if kill {
					p.end()
					s.killed()
					ps[lost] = s.start(cs[lost])
				} else if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				s.more(20, names...)
				if gap, failed := s.found(); failed == 0 {
					gaps = append(gaps, gap.Round(time.Millisecond))
				}
			}
			t.Logf("longest gaps between two acknowledged writes: %s", gaps)
			for _, p := range ps {
				_ = p.stdin.Close() // it ends
			}
			until(t, "all have ended their writes", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.done == len(names)
			})
			for _, p := range ps {
				p.end()
			}
			s.check(openAll(t, cs)["a"])
		})
	}
}
