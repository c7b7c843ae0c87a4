package gossip

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if at := os.Getenv("GOSSIP_TEST_JOIN"); at != "" {
		child(at)
		return
	}
	goleak.VerifyTestMain(m)
}

// child is a server in a process of its own, which ends with its standard input.
func child(at string) {
	_, err := Start(context.Background(), Config{
		Name: "child", Listen: "127.0.0.1:0", Key: testKey, Join: []string{at}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestKill kills a process. Without the sessions its death would be seen after
// seconds, with the timing for a LAN.
func TestKill(t *testing.T) {
	n1 := real(t, "n1", func(c *Config) { c.Preset = LAN })
	n2 := real(t, "n2", joinAt(n1.Address()), func(c *Config) { c.Preset = LAN })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GOSSIP_TEST_JOIN="+n1.Address())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	for _, s := range []*server{n1, n2} {
		s.sees("child n1 n2")
		s.hasSessions(2)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Logf("seen after %s and %s more", n1.sees("childx n1 n2"), n2.sees("childx n1 n2"))
	_ = cmd.Wait()
}

// real starts a server with sockets on loopback.
func real(t *testing.T, name string, change ...func(c *Config)) *server {
	t.Helper()
	l := &logs{}
	c := Config{Name: name, Listen: "127.0.0.1:0", Preset: Rack, Key: testKey, Logger: slog.New(slog.NewTextHandler(l, nil))}
	for _, f := range change {
		f(&c)
	}
	g, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Gossip: g, w: &world{t: t}, logs: l}
	t.Cleanup(func() { s.once.Do(func() { s.shutdown(); close(s.closed) }) })
	return s
}

func joinAt(addr string) func(*Config) { return func(c *Config) { c.Join = []string{addr} } }

// TestSockets is the life of three servers over real sockets: they meet, call
// each other, one dies and one leaves.
func TestSockets(t *testing.T) {
	n1 := real(t, "n1")
	n2, n3 := real(t, "n2", joinAt(n1.Address())), real(t, "n3", joinAt(n1.Address()))
	for _, s := range []*server{n1, n2, n3} {
		s.sees("n1 n2 n3")
		s.hasSessions(2)
	}
	n2.Handle("echo", func(_ context.Context, from Member, b []byte) ([]byte, error) {
		return append([]byte(from.Name), b...), nil
	})
	if b, err := n3.Call(t.Context(), "n2", "echo", []byte("!")); err != nil || string(b) != "n3!" {
		t.Errorf("%q, %v", b, err)
	}
	// Without a word, as a process that is killed: the kernel closes its sockets.
	n2.once.Do(func() { n2.shutdown(); close(n2.closed) })
	d := n1.sees("n1 n2x n3")
	n3.sees("n1 n2x n3")
	began := time.Now()
	n3.close()
	closed := time.Since(began)
	n1.sees("n1 n2x n3-")
	t.Logf("the death was seen after %s; closing took %s", d, closed)
}

func TestSocketsRefused(t *testing.T) {
	n1 := real(t, "n1", cluster("c1"))
	for says, change := range map[string]func(c *Config){
		"gossip key":           func(c *Config) { c.Key = make([]byte, keySize) },
		"has a gossip key":     func(c *Config) { c.Key = nil },
		"belongs to the clust": cluster("c2"),
		"has the same name":    func(c *Config) { c.Name = "n1" },
	} {
		s := real(t, "n2", joinAt(n1.Address()), change)
		s.says("refuse", says)
		if v := s.view(); v != s.Name() {
			t.Errorf("%s sees %q", s.Name(), v)
		}
		s.close()
	}
	if v := n1.view(); v != "n1" {
		t.Errorf("n1 sees %q", v)
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Start(t.Context(), Config{Name: "a", Listen: l.Addr().String()})
	if err == nil {
		t.Fatal("two listen on one port")
	}
	t.Log(err)
}

func TestAdvertise(t *testing.T) {
	for advertise, want := range map[string]string{"": "127.0.0.1:%d", "127.0.0.9": "127.0.0.9:%d", "127.0.0.9:99": "127.0.0.9:99", "localhost": "127.0.0.1:%d"} {
		s := real(t, "a", func(c *Config) { c.Advertise = advertise })
		_, port, _ := splitHostPort(s.Address())
		if want != "127.0.0.9:99" {
			want = fmt.Sprintf(want, port)
		}
		if s.Address() != want || port == 0 {
			t.Errorf("%q: %s instead of %s", advertise, s.Address(), want)
		}
		s.close()
	}
}
