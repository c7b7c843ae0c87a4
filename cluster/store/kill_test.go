package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"kvnet/model"
	"kvnet/model/state"
)

// childEnv names the directory of a process that only writes until it is
// killed. With childJobEnv "open" it only opens the store, with "fill" it writes
// until it can't.
const (
	childEnv    = "KVNET_STORE_TEST_CHILD"
	childJobEnv = "KVNET_STORE_TEST_JOB"
)

// child writes as fast as it can and says a line for each acknowledged write:
// "create <id>", "count <id> <n>", "term <generation>".
func child(dir string) int {
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Open(ctx, Config{Dir: dir, Listen: "127.0.0.1:0", MinFree: -1, Logger: quiet}, state.New())
	if err != nil {
		fmt.Println("error", errors.Is(err, ErrDamaged), err)
		return 1
	}
	// Lines shorter than a page are written whole.
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
	switch os.Getenv(childJobEnv) {
	case "open":
		fmt.Println("opened")
		return 0
	case "fill":
		for i := 0; ; i++ {
			if _, err := s.Create(ctx, network(strconv.Itoa(i))); err != nil {
				fmt.Println("error", errors.Is(err, ErrNoSpace), err)
				return 1
			}
			fmt.Println("create", i)
			// The next write tells whether this one has met the end of the disk.
			_, _ = s.client.Put(s.life, prefix+"filler", strings.Repeat("x", 256<<10))
		}
	}
	t, err := s.TakeTerm(ctx, "child", strconv.Itoa(os.Getpid()))
	if err != nil {
		say("error %v", err)
		return 1
	}
	say("term %d", t.Generation())
	var writers sync.WaitGroup
	for g := range 4 {
		writers.Go(func() {
			counter := fmt.Sprintf("counter-%d", g)
			if _, err := s.Create(ctx, router(counter)); err != nil && !strings.Contains(err.Error(), ErrExists.Error()) {
				say("error %v", err)
			}
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%d/%d/%d", os.Getpid(), g, i)
				if _, err := s.Create(ctx, network(id)); err != nil {
					say("error %v", err)
					return
				}
				say("create %s", id)
				var n uint64
				_, err := s.Update(ctx, model.KindRouter, counter, func(o model.Object) (model.Object, error) {
					r := o.(*model.Router)
					r.GatewayWrite++
					n = r.GatewayWrite
					return r, nil
				})
				if err != nil {
					say("error %v", err)
					return
				}
				say("count %s %d", counter, n)
			}
		})
	}
	writers.Wait()
	return 0
}

func TestAcknowledgedWritesSurviveKill9(t *testing.T) {
	dir := t.TempDir()
	created := map[string]bool{}
	counted := map[string]uint64{}
	var generation uint64
	for life := range 10 {
		gen := runUntilKilled(t, dir, created, counted)
		if gen <= generation {
			t.Fatalf("life %d: generation %x after %x", life, gen, generation)
		}
		generation = gen

		c := config(t)
		c.Dir = dir
		db := state.New()
		s, err := Open(ctx(t), c, db)
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		snap := db.Snapshot()
		for id := range created {
			if snap.Network(id) == nil {
				t.Errorf("life %d: network %q was acknowledged and is lost", life, id)
			}
		}
		for id, n := range counted {
			// One more may have been written whose answer never came.
			if got := snap.Router(id).GatewayWrite; got != n && got != n+1 {
				t.Errorf("life %d: counter %q is %d, %d was acknowledged", life, id, got, n)
			} else {
				counted[id] = got
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d objects, counters %v", len(created), counted)
}

// runUntilKilled runs a child in dir, kills it at a random moment of its writing
// and adds what was acknowledged. It returns the generation of the child's term.
func runUntilKilled(t *testing.T, dir string, created map[string]bool, counted map[string]uint64) (generation uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The moment is random in what has been written, not in time, so that slow
	// machines test the same.
	left := rand.IntN(200)
	killed := false
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // "signal: killed" is what we want
	}()
	timeout := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) || err != nil && killed {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(line)
		switch {
		case f[0] == "create" && len(f) == 2:
			created[f[1]] = true
		case f[0] == "count" && len(f) == 3:
			n, err := strconv.ParseUint(f[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			counted[f[1]] = n
		case f[0] == "term" && len(f) == 2:
			if generation, err = strconv.ParseUint(f[1], 10, 64); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("the child says %q", line)
		}
		if left--; left < 0 && !killed && generation != 0 {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !killed {
		t.Fatal("the child ended by itself")
	}
	return generation
}

func TestAKillDuringTheFirstStartIsNoHarm(t *testing.T) {
	for i := range 8 {
		c := config(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+c.Dir, childJobEnv+"=open")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The law holds for every moment; these are spread over the start.
		path := filepath.Join(c.Dir, []string{"lock", "etcd/member/snap/db", "etcd/member/wal"}[i%3])
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(path); err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%q never came", path)
			}
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		f := open(t, c)
		f.at(f.Create(ctx(t), network("n")))
		f.close()
	}
}

func TestAStoreThatWasOnlyBegunIsBegunAgain(t *testing.T) {
	c := config(t).withDefaults()
	dir := filepath.Join(engineDir(c), "member", "wal")
	// What a kill between the making of the log and its first entry leaves.
	id, cluster := uint64(1), uint64(2)
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &id, ClusterID: &cluster})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := wal.Create(zap.NewNop(), dir, metadata)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))
	f.close()
	f = open(t, c)
	if f.db.Snapshot().Network("n") == nil {
		t.Fatal("a store that has been made was begun again")
	}
}
