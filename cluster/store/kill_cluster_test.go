package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"kvnet/internal/pause"
	"kvnet/model/state"
)

// memberEnv holds the configuration of a process that is one of three members
// and writes until it is killed.
const memberEnv = "KVNET_STORE_TEST_MEMBER"

// memberConfig is what a process needs to know.
type memberConfig struct {
	Name, Listen string
	Cluster      Cluster
	Steady       bool // write until told to stop, and nothing may fail
}

// memberChild says "create <id>" for each acknowledged write, and "moved" when
// it has moved etcd's leader elsewhere for the first time.
func memberChild(dir, config string) int {
	var m memberConfig
	if err := json.Unmarshal([]byte(config), &m); err != nil {
		fmt.Println("error", err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := Config{
		Dir: dir, Name: m.Name, Listen: m.Listen, Cluster: m.Cluster, MinFree: -1, OpTimeout: 2 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
	if m.Steady {
		c.OpTimeout = 0
	}
	s, err := Open(ctx, c, state.New())
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
	if m.Steady {
		steady(s, m.Name, say)
		return 0
	}
	var work sync.WaitGroup
	work.Go(func() {
		for pause.For(ctx, 10*time.Millisecond) {
			if moved, _ := s.MoveLeader(ctx, func(string) bool { return true }); moved {
				say("moved")
				return
			}
		}
	})
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", m.Name, i)
		switch _, err := s.Create(context.Background(), network(id)); {
		case err == nil:
			say("create %s", id)
		case !errors.Is(err, ErrUnavailable):
			say("error %v", err)
		}
	}
	work.Wait()
	return 0
}

// process is a member in a process of its own.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closed at its end
}

func startMember(t *testing.T, c Config, steady bool) *process {
	t.Helper()
	b, err := json.Marshal(memberConfig{c.Name, c.Listen, c.Cluster, steady})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+c.Dir, memberEnv+"="+string(b))
	p.cmd.Stderr = t.Output()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	go func() {
		defer close(p.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
					t.Log(err)
				}
				return
			}
			p.lines <- strings.TrimSpace(line)
		}
	}()
	return p
}

// kill ends it as a power failure would, and drains what it has said.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
}

func TestAcknowledgedWritesSurviveTheLossOfAnyServer(t *testing.T) {
	cs := planned(t, "a", "b", "c")
	ps := map[string]*process{}
	for n, c := range cs {
		ps[n] = startMember(t, c, false)
	}
	created := map[string]bool{}
	moved := 0
	hear := func(line string) {
		switch f := strings.Fields(line); f[0] {
		case "create":
			created[f[1]] = true
		case "moved":
			moved++
		default:
			t.Fatalf("a member says %q", line)
		}
	}
	// next hears one member until it has written n more.
	next := func(p *process, n int) {
		t.Helper()
		for left := n; left > 0; {
			select {
			case line, ok := <-p.lines:
				if !ok {
					t.Fatal("a member has ended by itself")
				}
				hear(line)
				if strings.HasPrefix(line, "create") {
					left--
				}
			case <-ctx(t).Done():
				t.Fatal("no writes")
			}
		}
	}
	for moved == 0 {
		for _, p := range ps {
			next(p, 1)
		}
	}
	lost := []string{"a", "b", "c"}[rand.IntN(3)]
	next(ps[lost], rand.IntN(50))
	ps[lost].kill()
	for line := range ps[lost].lines {
		hear(line)
	}
	delete(ps, lost)
	for _, p := range ps {
		next(p, 20)
	}
	for _, p := range ps {
		p.kill()
	}
	for _, p := range ps {
		for line := range p.lines {
			hear(line)
		}
		_ = p.cmd.Wait() // "signal: killed" is what we want
	}

	// The lost one's disk is lost too.
	delete(cs, lost)
	for n, c := range cs {
		c.Cluster = Cluster{}
		cs[n] = c
	}
	fs := openAll(t, cs)
	for n, f := range fs {
		rev, err := f.Linearizable(ctx(t))
		snap := f.at(rev, err)
		for id := range created {
			if snap.Network(id) == nil {
				t.Errorf("%s: network %q was acknowledged and is lost", n, id)
			}
		}
	}
	t.Logf("%d acknowledged writes; %s was lost", len(created), lost)
}

func TestWhoLagsIsNudged(t *testing.T) {
	for what, c := range map[string]struct {
		match  uint64
		active bool
		want   bool
	}{
		"in sync":            {990, true, false},
		"far behind":         {10, true, true},
		"far behind, silent": {10, false, false},
	} {
		st := raft.Status{Progress: map[uint64]tracker.Progress{1: {Match: 1000}, 2: {Match: c.match, RecentActive: c.active}, 3: {Match: 1000, RecentActive: true}}}
		st.ID = 1
		if got := laggards(st); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestTheSuccessorIsInSync(t *testing.T) {
	voter := func(match uint64) tracker.Progress {
		return tracker.Progress{Match: match, RecentActive: true, State: tracker.StateReplicate}
	}
	// Names are in the opposite order of the ids.
	name := func(id uint64) string { return string(rune('z' - id)) }
	fit := func(n string) bool { return n != name(7) }
	quiet, probed, learner := voter(1000), voter(1000), voter(1000)
	quiet.RecentActive, probed.State, learner.IsLearner = false, tracker.StateProbe, true
	for what, c := range map[string]struct {
		others map[uint64]tracker.Progress
		want   uint64
	}{
		"the last by name":        {map[uint64]tracker.Progress{2: voter(990), 3: voter(999)}, 2},
		"one is not enough":       {map[uint64]tracker.Progress{2: voter(999)}, 0},
		"one is silent":           {map[uint64]tracker.Progress{2: voter(999), 3: quiet}, 0},
		"one is being looked for": {map[uint64]tracker.Progress{2: voter(999), 3: probed}, 0},
		"one has no vote":         {map[uint64]tracker.Progress{2: voter(999), 3: learner}, 0},
		"one is about to stop":    {map[uint64]tracker.Progress{2: voter(999), 7: voter(999)}, 0},
		"one is far behind":       {map[uint64]tracker.Progress{2: voter(999), 3: voter(10)}, 0},
		"five":                    {map[uint64]tracker.Progress{2: quiet, 3: voter(10), 4: voter(980), 5: voter(970), 6: voter(990)}, 4},
	} {
		st := raft.Status{Progress: c.others}
		st.ID, st.RaftState = 1, raft.StateLeader
		st.Progress[1] = voter(1000)
		if to, ok := successor(st, 1, name, fit); ok != (c.want != 0) || ok && to != c.want {
			t.Errorf("%s: %d, %v", what, to, ok)
		}
		if _, ok := successor(st, 9, name, fit); ok {
			t.Errorf("%s: another member's status was taken for one's own", what)
		}
		st.RaftState = raft.StateFollower
		if _, ok := successor(st, 1, name, fit); ok {
			t.Errorf("%s: a follower moves the leader", what)
		}
	}
}
