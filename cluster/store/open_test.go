package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"kvnet/integration/freeport"
	"kvnet/internal/pause"
	"kvnet/model"
	"kvnet/model/state"
)

func TestAnotherNameOnTheSameDataIsLogged(t *testing.T) {
	t.Parallel()
	c := config(t)
	for i, name := range []string{"old", "old", "new"} {
		var log bytes.Buffer
		c.Name, c.Logger = name, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		s, err := Open(ctx(t), c, state.New())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(log.String(), "name=new before=old"); said != (i == 2) {
			t.Errorf("start %d as %s: %s", i, name, log.String())
		}
	}
}

// openErr opens a store that must not open.
func openErr(t *testing.T, c Config) error {
	t.Helper()
	began := time.Now()
	s, err := Open(ctx(t), c, state.New())
	if err == nil {
		t.Fatalf("the store opened; close: %v", s.Close())
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Fatalf("it took %s to say %v", d, err)
	}
	return err
}

func TestARestartKeepsEverything(t *testing.T) {
	c := config(t)
	f := open(t, c)
	var want []model.Object
	for _, o := range full() {
		if _, decided := map[model.Kind]bool{model.KindRouterStatus: true, model.KindLoadBalancerStatus: true, model.KindNodeStatus: true}[o.Kind()]; decided {
			continue
		}
		f.at(f.Create(ctx(t), o))
		want = append(want, o)
	}
	term := takeTerm(f, "a", "1")
	f.at(f.Decide(ctx(t), term, []Decision{{New: routerStatus("r", "g")}}))
	before := f.db.Snapshot()
	f.close()
	// Neither the name nor the address is what makes it the same store.
	c.Name, c.Listen = "another=name,here", freeAddr(t)
	f = open(t, c)
	after := f.db.Snapshot()
	if after.Revision() < before.Revision() || !after.Complete() {
		t.Fatalf("revision %d after %d, complete %v", after.Revision(), before.Revision(), after.Complete())
	}
	for _, o := range append(want, routerStatus("r", "g")) {
		b, a := before.Get(o.Kind(), o.Key()), after.Get(o.Kind(), o.Key())
		if a == nil || *a.Stored() != *b.Stored() {
			t.Errorf("%s %q: %v after %v", o.Kind(), o.Key(), a, b)
		}
	}
	if l, _ := f.Leader(); l != term {
		t.Errorf("leader %+v after %+v", l, term)
	}
	_, err := f.Create(ctx(t), want[0])
	wantErr(t, err, ErrExists)
}

func TestASecondUserOfTheDirectoryIsToldSo(t *testing.T) {
	c := config(t)
	f := open(t, c)
	err := openErr(t, c)
	wantErr(t, err, ErrLocked)
	if !strings.Contains(err.Error(), c.Dir) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("the error does not say which and who: %v", err)
	}
	f.at(f.Create(ctx(t), network("n"))) // the first is not disturbed
}

func TestAnEngineOfAnotherProgramInTheDirectoryIsToldSo(t *testing.T) {
	c := config(t)
	f := open(t, c)
	// As if something else than kvnet used the files.
	if err := os.Rename(filepath.Join(c.Dir, "lock"), filepath.Join(c.Dir, "lock.old")); err != nil {
		t.Fatal(err)
	}
	wantErr(t, openErr(t, c), ErrLocked)
	f.at(f.Create(ctx(t), network("n")))
}

func TestTwoStoresOnOneMachine(t *testing.T) {
	a, b := config(t), config(t)
	a.Listen, b.Listen = freeAddr(t), freeAddr(t)
	f, g := open(t, a), open(t, b)
	f.at(f.Create(ctx(t), network("n")))
	g.at(g.Create(ctx(t), network("n")))

	c := config(t)
	c.Listen = a.Listen
	if err := openErr(t, c); !strings.Contains(err.Error(), a.Listen) {
		t.Errorf("the error does not name the address in use: %v", err)
	}
}

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNoPortIsOpenForClients(t *testing.T) {
	f := open(t, config(t))
	if n := len(f.engine.etcd.Clients); n != 0 {
		t.Fatalf("%d listeners for clients", n)
	}
}

func TestBadConfigurationIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no directory":     func(c *Config) { c.Dir = "" },
		"no port":          func(c *Config) { c.Listen = "127.0.0.1" },
		"no address":       func(c *Config) { c.Listen = "a b:c" },
		"a file":           func(c *Config) { c.Dir = filepath.Join(c.Dir, "file") },
		"bad to advertise": func(c *Config) { c.Advertise = "x/y:1" },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			if err := os.WriteFile(filepath.Join(c.Dir, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			change(&c)
			_ = openErr(t, c)
		})
	}
}

// each calls f for the files under dir that match.
func each(t *testing.T, dir, pattern string, f func(path string)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	for _, p := range paths {
		f(p)
	}
}

func TestDamagedFilesAreToldOf(t *testing.T) {
	overwrite := func(t *testing.T, path string, at, n int) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := at; i < min(at+n, len(b)); i++ {
			b[i] = 0xa5
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"database head": func(t *testing.T, dir string) {
			each(t, dir, "etcd/member/snap/db", func(p string) { overwrite(t, p, 0, 16<<10) })
		},
		"database pages": func(t *testing.T, dir string) {
			each(t, dir, "etcd/member/snap/db", func(p string) { overwrite(t, p, 2*os.Getpagesize(), 1<<30) })
		},
		"database half": func(t *testing.T, dir string) {
			each(t, dir, "etcd/member/snap/db", func(p string) {
				if err := os.Truncate(p, 16<<10); err != nil {
					t.Fatal(err)
				}
			})
		},
		"database cut": func(t *testing.T, dir string) {
			each(t, dir, "etcd/member/snap/db", func(p string) {
				if err := os.Truncate(p, 5000); err != nil {
					t.Fatal(err)
				}
			})
		},
		"log": func(t *testing.T, dir string) {
			each(t, dir, "etcd/member/wal/*.wal", func(p string) { overwrite(t, p, 0, 1<<10) })
		},
		"no log": func(t *testing.T, dir string) {
			each(t, dir, "etcd/member/wal/*.wal", func(p string) {
				if err := os.Truncate(p, 0); err != nil {
					t.Fatal(err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			f := open(t, c)
			for i := range 20 {
				f.at(f.Create(ctx(t), network(fmt.Sprint(i))))
			}
			f.close()
			damage(t, c.Dir)
			// In a process of its own: etcd leaves goroutines behind when it
			// dies of what it reads.
			began := time.Now()
			cmd := exec.CommandContext(ctx(t), os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+c.Dir, childJobEnv+"=open")
			cmd.Stderr = t.Output()
			out, err := cmd.Output()
			if err == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Fatalf("%v, %s", err, out)
			}
			if d := time.Since(began); d > 30*time.Second {
				t.Errorf("it took %s", d)
			}
			if s := string(out); !strings.HasPrefix(s, "error true ") || !strings.Contains(s, c.Dir) {
				t.Errorf("the error does not say that %q is damaged: %s", c.Dir, s)
			}
			t.Logf("%s", out)
		})
	}
}

func TestOpenGivesUpWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := Open(ctx, config(t), state.New())
	if err == nil {
		t.Error(s.Close())
	}
	wantErr(t, err, ErrUnavailable)
}

func TestAnOpenThatGaveUpLeavesTheDirectoryInTheEnd(t *testing.T) {
	c := config(t)
	for i := range 10 {
		short, cancel := context.WithTimeout(context.Background(), time.Duration(i*i)*time.Millisecond)
		s, err := Open(short, c, state.New())
		cancel()
		switch {
		case err == nil:
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		case !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrLocked):
			t.Fatal(err)
		}
	}
	for all := ctx(t); ; {
		s, err := Open(all, c, state.New())
		if err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, ErrLocked) || !pause.For(all, 10*time.Millisecond) {
			t.Fatal(err)
		}
	}
}

func TestOperationsEndWithTheirContext(t *testing.T) {
	f := open(t, config(t))
	c, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := f.Create(c, network("n"))
	wantErr(t, err, ErrUnavailable)
	wantErr(t, err, context.Canceled)
}

func TestAnEngineThatCannotGoOnIsToldOf(t *testing.T) {
	c := config(t)
	c.Logger = slog.New(slog.DiscardHandler)
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))
	ended := make(chan struct{})
	go func() { // as the goroutines of the engine do when the disk fails
		defer close(ended)
		log := f.engine.etcd.Server.Logger()
		log.Fatal("failed to save Raft hard state and entries", zap.Error(errors.New("no space left on device")))
		t.Error("the engine went on")
	}()
	<-ended
	<-f.Failed()
	if err := f.Err(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatalf("error %v", err)
	}
	_, err := f.Create(context.Background(), network("m"))
	wantErr(t, err, ErrUnavailable)
	if !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("the error does not say why: %v", err)
	}
	if f.db.Snapshot().Network("n") == nil {
		t.Error("the tables are gone")
	}
}

// alarm is a log handler that wants silence.
type alarm struct {
	slog.Handler
	t testing.TB
}

func (a alarm) Enabled(context.Context, slog.Level) bool { return true }
func (a alarm) WithAttrs(as []slog.Attr) slog.Handler    { return alarm{a.Handler.WithAttrs(as), a.t} }
func (a alarm) Handle(ctx context.Context, r slog.Record) error {
	// A slow machine is not what this is about.
	if r.Level >= slog.LevelWarn && !strings.Contains(r.Message, "too long") && !strings.Contains(r.Message, "slow") {
		a.t.Errorf("logged without need: %s", r.Message)
	}
	return a.Handler.Handle(ctx, r)
}

func TestNothingIsLoggedWhenNothingIsWrong(t *testing.T) {
	c := config(t)
	for range 3 {
		c.Logger = slog.New(alarm{testLog(t).Handler(), t})
		f := open(t, c)
		takeTerm(f, "a", "1")
		f.close()
	}
}
