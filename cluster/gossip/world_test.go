package gossip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// world is a memNet with servers on it. Its tests run in a bubble of virtual
// time, which also fails them if a goroutine is left at the end.
type world struct {
	t   *testing.T
	net *memNet
}

// server is a Gossip with its host.
type server struct {
	*Gossip
	w    *world
	host *memHost
	logs *logs
}

var testKey = bytes.Repeat([]byte{7}, keySize)

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// What memberlist has begun ends by itself a while after its shutdown.
		// What is left after that is left for ever.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		f(t, &world{t: t, net: newMemNet()})
	})
}

// addr is the address of the server number i.
func addr(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i) }

// start starts the server n<i> at addr(i), with change applied to its settings.
// It is killed at the end of the test if it still runs.
func (w *world) start(i int, change ...func(c *Config)) *server {
	w.t.Helper()
	s, err := w.tryStart(i, change...)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) tryStart(i int, change ...func(c *Config)) (*server, error) {
	host := w.net.listen(addr(i))
	l := &logs{}
	c := Config{
		Name: fmt.Sprintf("n%d", i), Listen: addr(i), Preset: Rack, Key: testKey,
		Transport: host, Logger: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	for _, f := range change {
		f(&c)
	}
	g, err := Start(w.t.Context(), c)
	if err != nil {
		host.kill()
		return nil, err
	}
	s := &server{Gossip: g, w: w, host: host, logs: l}
	w.t.Cleanup(s.kill)
	return s, nil
}

// join sets the seeds.
func join(is ...int) func(*Config) {
	return func(c *Config) {
		for _, i := range is {
			c.Join = append(c.Join, addr(i))
		}
	}
}

func cluster(id string) func(*Config) { return func(c *Config) { c.ClusterID = id } }

// kill ends the server as kill -9 does.
func (s *server) kill() {
	s.host.kill()
	s.once.Do(func() {
		s.shutdown()
		close(s.closed)
	})
}

func (s *server) close() {
	s.w.t.Helper()
	if err := s.Close(context.Background()); err != nil {
		s.w.t.Fatal(err)
	}
}

// view writes the view as "n1 n2- n3x": - left, x failed.
func (s *server) view() string {
	var b bytes.Buffer
	for _, m := range s.Members() {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(m.Name + map[State]string{Alive: "", Left: "-", Failed: "x"}[m.State])
	}
	return b.String()
}

// sees waits until the view is want and returns how long it took.
func (s *server) sees(want string) time.Duration {
	s.w.t.Helper()
	began := time.Now()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		changed := s.Changes()
		if s.view() == want {
			return time.Since(began)
		}
		select {
		case <-changed:
		case <-limit.C:
			s.w.t.Fatalf("%s sees %q instead of %q\n%s", s.Name(), s.view(), want, s.logs)
		}
	}
}

// keeps fails the test if the view is not want for all of d.
func (s *server) keeps(want string, d time.Duration) {
	s.w.t.Helper()
	limit := time.NewTimer(d)
	defer limit.Stop()
	for {
		changed := s.Changes()
		if v := s.view(); v != want {
			s.w.t.Fatalf("%s sees %q instead of %q\n%s", s.Name(), v, want, s.logs)
		}
		select {
		case <-changed:
		case <-limit.C:
			return
		}
	}
}

// logs collects what was logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// says waits until the server has logged something with each of parts in it.
func (s *server) says(parts ...string) {
	s.w.t.Helper()
	for range 600 {
		missing := ""
		for _, p := range parts {
			if !bytes.Contains([]byte(s.logs.String()), []byte(p)) {
				missing = p
			}
		}
		if missing == "" {
			return
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
	s.w.t.Fatalf("%s never said %q:\n%s", s.Name(), parts, s.logs)
}
