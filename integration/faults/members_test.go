package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/netns"
)

// staysOut checks for a while that a server gets into no cluster, and ends it.
func (f *field) staysOut(m *cluster.Member, d time.Duration) error {
	if err := m.Launch(); err != nil {
		return err
	}
	deadline := time.Now().Add(d)
	for time.Now().Before(deadline) {
		status, _, err := m.Do(f.ctx, http.MethodGet, "/readyz", nil)
		if err == nil && status == http.StatusOK {
			return fmt.Errorf("%s is ready, though it can be in no cluster", m.Name)
		}
		if !m.Running() {
			f.note("%s ends at once", m.Name)
			break
		}
		if err := rest(f, 100*time.Millisecond); err != nil {
			return err
		}
	}
	views, err := f.leader.View(f.ctx)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.Name == m.Name && v.Address == m.Gossip {
			return fmt.Errorf("%s is a member: %+v", m.Name, v)
		}
	}
	return nil
}

// unchanged checks that the leader is as before the fault.
func (f *field) unchanged() error {
	if n := f.Terms(f.mark); n > 0 {
		return fmt.Errorf("the leader has changed %d times", n)
	}
	return nil
}

func wrongKey(f *field) error {
	key := filepath.Join(f.Dir, "other.key")
	if err := cluster.WriteKey(key); err != nil {
		return err
	}
	m, err := f.Add(f.ctx, cluster.Addition{Name: "stranger", Apart: true, KeyFile: key})
	if err != nil {
		return err
	}
	return errors.Join(f.staysOut(m, 5*time.Second), f.Remove(f.ctx, m), f.unchanged())
}

// A server that has the key and the name of another one is refused, and the other
// one stays.
func takenName(f *field) error {
	m, err := f.Add(f.ctx, cluster.Addition{Name: f.leader.Name, Machine: "double", Apart: true})
	if err != nil {
		return err
	}
	err = errors.Join(f.staysOut(m, 5*time.Second), f.Remove(f.ctx, m))
	views, viewErr := f.Followers(f.leader)[0].View(f.ctx)
	for _, v := range views {
		if v.Name == f.leader.Name && (v.Address != f.leader.Gossip || v.State != "alive") {
			err = errors.Join(err, fmt.Errorf("the name has got another owner: %+v", v))
		}
	}
	return errors.Join(err, viewErr, f.unchanged())
}

// garbage sends nonsense to the gossip port of the leader.
func garbage(f *field) error {
	from := f.Followers(f.leader)[0]
	for i := range 60 {
		for _, network := range []string{"udp4", "tcp4"} {
			if err := sendGarbage(f.ctx, from.NS, network, f.leader.Gossip, byte(i)); err != nil {
				return err
			}
		}
	}
	return f.unchanged()
}

func sendGarbage(ctx context.Context, ns *netns.NS, network, to string, first byte) error {
	var conn net.Conn
	if err := ns.Do(func() (err error) {
		conn, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, to)
		return err
	}); err != nil {
		return fmt.Errorf("send garbage to %s: %w", to, err)
	}
	defer func() { _ = conn.Close() }()
	text := make([]byte, 1200)
	if _, err := rand.Read(text); err != nil {
		return fmt.Errorf("make garbage: %w", err)
	}
	text[0] = first // the type of a message, of which there are few
	_, _ = conn.Write(text)
	if network == "tcp4" && first%2 == 0 {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = io.Copy(io.Discard, conn)
	}
	return nil
}

// A server without data whose seeds don't answer waits, and founds nothing.
func joinNobody(f *field) error {
	m, err := f.Add(f.ctx, cluster.Addition{Name: "lonely", Apart: true, Join: []string{f.NextHost(100) + ":7946"}})
	if err != nil {
		return err
	}
	return errors.Join(f.staysOut(m, 5*time.Second), f.Remove(f.ctx, m), f.unchanged())
}

// Of four servers that expect three, never two clusters come out.
func fourOfThree(f *field) (err error) {
	key := filepath.Join(f.Dir, "four.key")
	if err := cluster.WriteKey(key); err != nil {
		return err
	}
	var join []string
	for i := range 4 {
		join = append(join, f.NextHost(i)+":7946")
	}
	var four []*cluster.Member
	defer func() {
		for _, m := range four {
			err = errors.Join(err, f.Remove(f.ctx, m))
		}
	}()
	for i := range 4 {
		m, err := f.Add(f.ctx, cluster.Addition{Name: fmt.Sprintf("x%d", i+1), Expect: 3, Apart: true, Join: join, KeyFile: key})
		if err != nil {
			return err
		}
		four = append(four, m)
	}
	for _, m := range four {
		if err := m.Launch(); err != nil {
			return err
		}
	}
	if err := rest(f, 10*time.Second); err != nil {
		return err
	}
	ready := 0
	leaders := map[string]bool{}
	for _, m := range four {
		if status, _, err := m.Do(f.ctx, http.MethodGet, "/readyz", nil); err != nil || status != http.StatusOK {
			continue
		}
		ready++
		views, err := m.View(f.ctx)
		if err != nil {
			return err
		}
		for _, v := range views {
			if v.Leader {
				leaders[v.Name] = true
			}
		}
	}
	f.note("%d of 4 are ready, leaders: %d", ready, len(leaders))
	if len(leaders) > 1 {
		return fmt.Errorf("there are several clusters, led by %v", leaders)
	}
	return f.unchanged()
}

// A cluster of one grows to three; then the first may die.
func scaleUp(f *field) (err error) {
	return f.own(1, false, func() error {
		before, err := f.Record(f.ctx, f.leader)
		if err != nil {
			return err
		}
		return f.grow(before)
	})
}

func (f *field) grow(before cluster.Record) error {
	for _, name := range []string{"s2", "s3"} {
		began := time.Now()
		m, err := f.Add(f.ctx, cluster.Addition{Name: name})
		if err != nil {
			return err
		}
		if err := f.restart(m); err != nil {
			return err
		}
		f.note("%s ready after %s", name, time.Since(began).Round(time.Millisecond))
	}
	if err := f.Connect(f.ctx); err != nil {
		return err
	}
	for _, m := range f.Members {
		if err := before.CompareObjects(f.ctx, m); err != nil {
			return err
		}
	}
	f.mark = f.Mark()
	if err := f.leader.Kill(); err != nil {
		return err
	}
	if _, err := f.newLeader(); err != nil {
		return err
	}
	if err := f.ProveWork(f.ctx); err != nil {
		return err
	}
	if v := f.Judge(f.mark); v.Writers() > 1 {
		return fmt.Errorf("two servers wrote at once:\n%s", v)
	}
	return f.restart(f.leader)
}
