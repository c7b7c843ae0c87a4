package gossip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestJoinLeaveKill(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2, n3 := w.start(1), w.start(2, join(1)), w.start(3, join(1))
		for _, s := range []*server{n1, n2, n3} {
			s.sees("n1 n2 n3")
		}
		n2.hasSessions(2)
		n2.keeps("n1 n2 n3", time.Minute) // also while nothing happens
		for _, s := range []*server{n1, n2, n3} {
			if l := s.logs.String(); strings.Contains(l, "WARN") || strings.Contains(l, "ERROR") {
				t.Errorf("%s complains although nothing is wrong:\n%s", s.Name(), l)
			}
		}

		began := time.Now()
		n3.close()
		if d := time.Since(began); d > 300*time.Millisecond {
			t.Errorf("closing took %s", d)
		}
		if d := n1.sees("n1 n2 n3-"); d > 50*time.Millisecond {
			t.Errorf("the leave was seen after %s", d)
		}
		n2.sees("n1 n2 n3-")

		n2.kill()
		if d := n1.sees("n1 n2x n3-"); d > 10*time.Millisecond {
			t.Errorf("the death was seen after %s", d)
		}
		n1.keeps("n1 n2x n3-", time.Minute)
		n1.says("a member has failed", "a member has left")

		n2 = w.start(2, join(1))
		n1.sees("n1 n2 n3-")
		n2.sees("n1 n2")
	})
}

// sessions waits until the server has n sessions.
func (s *server) hasSessions(n int) {
	s.w.t.Helper()
	for range 100 {
		s.Gossip.sessions.mu.Lock()
		have := len(s.Gossip.sessions.open)
		s.Gossip.sessions.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
	s.w.t.Fatalf("%s has no %d sessions", s.Name(), n)
}

func noSessions(c *Config) { c.tuning.noSessions = true }
func noProbes(c *Config)   { c.tuning.noProbes = true }

// TestSilentDeath: a machine that is gone closes no session; probes find out.
func TestSilentDeath(t *testing.T) {
	limits := map[Preset]struct{ others, self time.Duration }{
		Rack: {1500 * time.Millisecond, 2 * time.Second},
		LAN:  {4 * time.Second, 7 * time.Second},
	}
	for preset, limit := range limits {
		t.Run(string(preset), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				with := func(c *Config) { c.Preset = preset }
				n1, n2, n3 := w.start(1, with), w.start(2, with, join(1)), w.start(3, with, join(1))
				n3.sees("n1 n2 n3")
				n1.sees("n1 n2 n3")
				n2.hasSessions(2)
				w.net.partition(true, addr(3), addr(1), addr(2))
				d := n1.sees("n1 n2 n3x")
				// The one that is cut off must notice about as soon.
				alone := d + n3.sees("n1x n2x n3")
				t.Logf("noticed after %s by the others, after %s by itself", d, alone)
				if d > limit.others || alone > limit.self {
					t.Error("too late")
				}
				w.net.partition(false, addr(3), addr(1), addr(2))
				if d := n1.sees("n1 n2 n3"); d > maxRejoin+2*time.Second {
					t.Errorf("mended after %s", d)
				}
				n2.sees("n1 n2 n3")
				n3.sees("n1 n2 n3")
			})
		})
	}
}

// TestLongPartition: the view is mended also when memberlist has forgotten the
// other side.
func TestLongPartition(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := w.start(1), w.start(2, join(1))
		n1.sees("n1 n2")
		w.net.partition(true, addr(1), addr(2))
		n1.sees("n1 n2x")
		time.Sleep(time.Hour) // virtual
		n1.sees("n1 n2x")
		w.net.partition(false, addr(1), addr(2))
		if d := n1.sees("n1 n2"); d > maxRejoin+2*time.Second {
			t.Errorf("mended after %s", d)
		}
		n2.sees("n1 n2")
	})
}

// TestDroppedSession: a connection that breaks is no death, and neither is a
// refused one of a member that answers.
func TestDroppedSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := w.start(1), w.start(2, join(1))
		n1.sees("n1 n2")
		n1.hasSessions(1)
		n2.host.drop()
		n1.keeps("n1 n2", 5*time.Second)
		n2.keeps("n1 n2", 5*time.Second)
		n1.hasSessions(1) // anew

		// A firewall refuses streams from now on and drops the session.
		w.net.mu.Lock()
		w.net.refuse = true
		w.net.mu.Unlock()
		n2.host.drop()
		n1.sees("n1 n2x")
		if d := n1.sees("n1 n2"); d > time.Second {
			t.Errorf("the member's answers were heard after %s", d)
		}
		n1.keeps("n1 n2", time.Minute)
	})
}

// TestSilentAfterSession: where nothing answers, the end of a session proves
// nothing. Whether the member has failed is left to the probes, which don't run
// here.
func TestSilentAfterSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := w.start(1, noProbes), w.start(2, noProbes, join(1))
		n1.sees("n1 n2")
		n1.hasSessions(1)
		n2.hasSessions(1)
		w.net.partition(true, addr(1), addr(2))
		n2.host.drop()
		n1.keeps("n1 n2", time.Minute)
		n2.keeps("n1 n2", time.Second)
	})
}

// TestDeathBySessionOnly shows that a dead process is found without probes.
func TestDeathBySessionOnly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2, n3 := w.start(1, noProbes), w.start(2, noProbes, join(1)), w.start(3, noProbes, join(1))
		for _, s := range []*server{n1, n2, n3} {
			s.sees("n1 n2 n3")
			s.hasSessions(2)
		}
		n2.kill()
		if d := n1.sees("n1 n2x n3"); d > 10*time.Millisecond {
			t.Errorf("noticed after %s", d)
		}
		n3.sees("n1 n2x n3")
		n2 = w.start(2, noProbes, join(1))
		n1.sees("n1 n2 n3")
		n3.sees("n1 n2 n3")
		n2.sees("n1 n2 n3")
	})
}

// TestRestart: a server that is killed and starts at once, before anybody calls
// it failed, is a member again.
func TestRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := w.start(1, noSessions), w.start(2, noSessions, join(1))
		n1.sees("n1 n2")
		n2.kill()
		again := w.start(2, noSessions, join(1))
		again.sees("n1 n2")
		n1.says("a member has been started anew")
		n1.keeps("n1 n2", time.Minute)
		if m, _ := n1.Gossip.view.get("n2"); m.Meta.Instance != again.Instance() {
			t.Error("n1 knows the earlier life")
		}

		// With another address the name is free once the earlier life has failed.
		again.kill()
		moved := w.start(7, noSessions, join(1), func(c *Config) { c.Name = "n2" })
		moved.says("is refused", "has the same name")
		moved.sees("n1 n2")
		n1.sees("n1 n2")
		if m, _ := n1.Gossip.view.get("n2"); m.Address != addr(7) {
			t.Errorf("n1 has n2 at %s", m.Address)
		}
	})
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		first, second func(c *Config)
		says          string
	}{
		"another key":     {func(*Config) {}, func(c *Config) { c.Key = make([]byte, keySize) }, "gossip key and this server's differ"},
		"no key":          {func(*Config) {}, func(c *Config) { c.Key = nil }, "gossip key"},
		"another cluster": {cluster("c1"), cluster("c2"), "belongs to the cluster"},
		"the same name":   {func(*Config) {}, func(c *Config) { c.Name = "n1" }, "has the same name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n1, other := w.start(1, tt.first), w.start(2, join(1), tt.second)
				n1.says("refuse", tt.says)
				other.says("refuse", tt.says)
				n1.keeps("n1", 30*time.Second)
				other.keeps(other.Name(), time.Second)
				// The one that tries again and again knows why nothing comes of it.
				if got := other.Trouble(); !strings.Contains(got, tt.says) || strings.Contains(got, `""`) {
					t.Errorf("trouble %q", got)
				}
				if n := strings.Count(n1.logs.String(), "\n"); n > 6 {
					t.Errorf("%d lines were logged in a minute:\n%s", n, n1.logs)
				}
			})
		})
	}
}

// TestClusterThroughThird: a server of no cluster knows members of one and
// doesn't bring those of another one in.
func TestClusterThroughThird(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, _, n4 := w.start(1, cluster("c1")), w.start(3, join(1)), w.start(4, join(3))
		n4.sees("n1 n3 n4")
		n2 := w.start(2, cluster("c2"), join(4))
		n4.says("a server is refused", "c2")
		n1.keeps("n1 n3 n4", 10*time.Second)
		if v := n2.view(); strings.Contains(v, "n1") {
			t.Errorf("n2 sees %q", v)
		}

		if err := n4.SetCluster("c2"); err == nil {
			t.Error("n4 went over to another cluster than the members'")
		}
		if err := n4.SetCluster("c1"); err != nil {
			t.Error(err)
		}
		n1.hasMeta("n4", func(m Meta) bool { return m.ClusterID == "c1" })
		time.Sleep(time.Minute) // virtual
		if v := n2.view(); strings.Contains(v, "n1") || strings.Contains(v, "n4") && !strings.Contains(v, "n4-") {
			t.Errorf("n2 sees %q although n4 is in another cluster", v)
		}
		if err := n4.SetCluster("c3"); err == nil {
			t.Error("n4 changed its cluster")
		}
	})
}

// hasMeta waits until the metadata of a member is as ok wants it.
func (s *server) hasMeta(name string, ok func(Meta) bool) {
	s.w.t.Helper()
	for range 100 {
		if m, known := s.Gossip.view.get(name); known && ok(m.Meta) {
			return
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
	s.w.t.Fatalf("%s never knew that of %s", s.Name(), name)
}

// TestUDPBlocked: with TCP alone the members hold, and somebody says what is
// wrong.
func TestUDPBlocked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := w.start(1), w.start(2, join(1))
		n1.sees("n1 n2")
		w.net.mu.Lock()
		w.net.udpCut = true
		w.net.mu.Unlock()
		n1.keeps("n1 n2", time.Minute)
		n2.keeps("n1 n2", time.Second)
		n1.says("firewall")
	})
}

func TestSeeds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		file := t.TempDir() + "/seeds"
		where := "10.0.0.9"
		var mu sync.Mutex
		named := func(c *Config) {
			c.Join = []string{"servers.example:7946"}
			c.SeedFile = file
			c.tuning.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				mu.Lock()
				defer mu.Unlock()
				if where == "" {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr(where)}, nil
			}
		}
		n1, n2 := w.start(1), w.start(2, named)
		n2.keeps("n2", 10*time.Second)
		mu.Lock()
		where = "10.0.0.1" // the name gets another address
		mu.Unlock()
		n2.sees("n1 n2")
		n1.sees("n1 n2")
		// The address is remembered when the name is gone.
		time.Sleep(2 * minRejoin) // virtual; until it is written
		n2.close()
		mu.Lock()
		where = ""
		mu.Unlock()
		w.start(2, named).sees("n1 n2")
		n1.sees("n1 n2")
	})
}

func TestShort(t *testing.T) {
	m := func(states ...State) (out []Member) {
		for _, s := range states {
			out = append(out, Member{State: s})
		}
		return out
	}
	tests := []struct {
		members      []Member
		expect, size int
		unmet, want  bool
	}{
		{m(Alive), 0, 0, false, false},
		{m(Alive), 0, 0, true, true},
		{m(Alive, Alive), 0, 0, true, true},
		{m(Alive, Alive), 0, 0, false, false},
		{m(Alive, Failed), 0, 0, false, true},
		{m(Alive, Left), 0, 0, false, false},
		{m(Alive, Alive), 3, 0, false, true},
		{m(Alive, Alive), 0, 3, false, true},
		{m(Alive, Alive, Alive), 3, 3, true, false},
	}
	for _, tt := range tests {
		if got := short(tt.members, tt.expect, tt.size, tt.unmet); got != tt.want {
			t.Errorf("short(%v, %d, %d, %v) = %v", tt.members, tt.expect, tt.size, tt.unmet, got)
		}
	}
}

func TestTargets(t *testing.T) {
	members := []Member{{Name: "a", Address: "10.0.0.1:1", State: Alive}, {Name: "b", Address: "10.0.0.2:1", State: Failed}, {Name: "c", Address: "10.0.0.3:1", State: Left}}
	got := targets("10.0.0.9:1", members, []string{"10.0.0.1:1", "[::ffff:10.0.0.2]:1", "10.0.0.3:1", "10.0.0.9:1", "10.0.0.4:1"})
	if want := "10.0.0.2:1 10.0.0.3:1 10.0.0.4:1"; strings.Join(got, " ") != want {
		t.Errorf("targets are %v", got)
	}
}

func TestForget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := w.start(1), w.start(2, join(1))
		n1.sees("n1 n2")
		n1.Forget("n2")
		n1.sees("n1 n2") // it is alive
		n2.kill()
		n1.sees("n1 n2x")
		n1.Forget("n2")
		n1.sees("n1")
		n1.keeps("n1", time.Minute)
	})
}

// TestViewBounded: the members that are gone for longest are forgotten.
func TestViewBounded(t *testing.T) {
	v := newView("self")
	for i := range maxKnown + 10 {
		name := fmt.Sprintf("n%05d", i)
		v.listed(name, addr(i), Meta{}, true)
		v.unlisted(name)
	}
	if m, _ := v.members(); len(m) != maxKnown || m[len(m)-1].Name != fmt.Sprintf("n%05d", maxKnown+9) {
		t.Errorf("%d are known", len(m))
	}
}
