package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// Config says how a cluster is made.
type Config struct {
	Binary string
	// AuditInterval and FullAuditInterval are the servers' flags of these names.
	AuditInterval, FullAuditInterval time.Duration
	// SmallDisks gives each server a disk of its own, of diskSize in memory.
	SmallDisks bool
}

// Cluster is a lab with the servers that control its switches.
type Cluster struct {
	*lab.Flat
	Config
	Members []*Member

	net   *management
	key   string
	made  int       // machines for servers so far
	apart []*Member // those that have nothing to do with the cluster
}

// New joins a lab to a management network without servers. Closing the lab is the
// caller's.
func New(ctx context.Context, l *lab.Flat, c Config) (*Cluster, error) {
	path, err := filepath.Abs(c.Binary)
	if err != nil {
		return nil, fmt.Errorf("find the binary: %w", err)
	}
	c.Binary = path
	net, err := newManagement(ctx, l.Lab)
	if err != nil {
		return nil, fmt.Errorf("make the management network: %w", err)
	}
	cl := &Cluster{Flat: l, Config: c, net: net, key: filepath.Join(l.Dir, "gossip.key")}
	return cl, WriteKey(cl.key)
}

// WriteKey makes a file with a random key for the gossip.
func WriteKey(file string) error {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	if err := os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key[:])+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep a key: %w", err)
	}
	return nil
}

// Addition says how a further server is to be run.
type Addition struct {
	Name string
	// Machine is the name of its machine; empty: Name.
	Machine string
	// Expect is --bootstrap-expect; 0: the flag isn't given.
	Expect int
	// Join are addresses instead of those of all members so far; empty and not
	// nil: none.
	Join []string
	// KeyFile is a key instead of the cluster's.
	KeyFile string
	// Apart is a server that is not to be a member: the switches never know it, and
	// it doesn't stand among Members.
	Apart bool
	// Dir holds the server's data and log; empty: a folder of that name.
	Dir string
}

// Add makes a machine for a server, which is not started yet. The switches don't
// know it before Connect.
func (c *Cluster) Add(ctx context.Context, a Addition) (*Member, error) {
	host := c.NextHost(0)
	if a.Join == nil {
		for _, m := range c.Members {
			a.Join = append(a.Join, m.Gossip)
		}
	}
	n := c.made
	c.made++
	a.Machine = cmp.Or(a.Machine, a.Name)
	ns, err := c.net.plug(ctx, a.Machine, host)
	if err != nil {
		return nil, err
	}
	if a.KeyFile == "" {
		a.KeyFile = c.key
	}
	if a.Dir == "" {
		a.Dir = filepath.Join(c.Dir, "server-"+a.Machine)
	}
	if c.SmallDisks {
		if err := c.mountDisk(a.Dir); err != nil {
			return nil, err
		}
	}
	args := []string{"--advertise", host, "--gossip-key-file", a.KeyFile, "--gossip-preset", "rack", "--allow-default-accounts"}
	if a.Expect > 0 {
		args = append(args, "--bootstrap-expect", fmt.Sprint(a.Expect))
	}
	for _, j := range a.Join {
		args = append(args, "--join", j)
	}
	s, err := server.New(server.Config{
		Binary: c.Binary, Dir: a.Dir, Name: a.Name, NS: ns, Host: host, Args: args,
		AuditInterval: c.AuditInterval, FullAuditInterval: c.FullAuditInterval,
	})
	if err != nil {
		return nil, err
	}
	m := &Member{Server: s, Relay: relay.NewDialing(s.DialOpenFlow), number: n, renamed: map[string]bool{}}
	if a.Apart {
		c.apart = append(c.apart, m)
		return m, nil
	}
	for _, b := range c.Controlled {
		if _, err := m.Relay.Listen(b.Name(), "unix", c.Node(b.Node).ControllerSocketOf(b.Bridge, n)); err != nil {
			m.Relay.Close()
			return nil, err
		}
	}
	c.Members = append(c.Members, m)
	return m, nil
}

// NextHost is the address of the server that is added next or, with i, i servers
// later.
func (c *Cluster) NextHost(i int) string { return fmt.Sprint(subnet, c.made+i+1) }

// Remove ends a server for good. The switches forget it.
func (c *Cluster) Remove(ctx context.Context, m *Member) error {
	c.apart = slices.DeleteFunc(c.apart, func(o *Member) bool { return o == m })
	before := len(c.Members)
	c.Members = slices.DeleteFunc(c.Members, func(o *Member) bool { return o == m })
	err := errors.Join(m.Kill(), m.end())
	if len(c.Members) < before {
		err = errors.Join(err, c.Connect(ctx))
	}
	return err
}

// Names are s1, s2, … of the first servers.
func Names(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("s%d", i+1))
	}
	return names
}

// Found starts n servers that found a cluster together, and waits until all are
// ready and the switches are connected to all.
func (c *Cluster) Found(ctx context.Context, n int) error {
	join := []string{}
	for i := range n {
		if n > 1 {
			join = append(join, c.NextHost(i)+":7946")
		}
	}
	for _, name := range Names(n) {
		m, err := c.Add(ctx, Addition{Name: name, Expect: n, Join: join})
		if err != nil {
			return err
		}
		if err := m.Launch(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		if err := m.WaitReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return c.Connect(ctx)
}

// Connect makes all switches connect to all servers that run, at once: by
// themselves they wait up to 8 s between attempts. Connections that work stay.
func (c *Cluster) Connect(ctx context.Context) error {
	for _, b := range c.Controlled {
		var sockets []string
		for _, m := range c.Members {
			socket := c.Node(b.Node).ControllerSocketOf(b.Bridge, m.number)
			// A controller of another name is tried at once; one more slash makes
			// it another name of the same socket.
			if !m.Relay.Connected(b.Name()) {
				m.renamed[b.Name()] = !m.renamed[b.Name()]
			}
			if m.renamed[b.Name()] {
				socket = filepath.Dir(socket) + "//" + filepath.Base(socket)
			}
			sockets = append(sockets, socket)
		}
		if err := c.Node(b.Node).SetControllers(ctx, b.Bridge, sockets...); err != nil {
			return err
		}
	}
	return c.WaitConnected(ctx)
}

// WaitConnected waits until all switches are connected to all servers that run.
func (c *Cluster) WaitConnected(ctx context.Context) error {
	for _, m := range c.Members {
		if !m.Serving() {
			continue
		}
		if err := m.Relay.WaitConnected(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// Serving are the members that run.
func (c *Cluster) Serving() (out []*Member) {
	for _, m := range c.Members {
		if m.Serving() {
			out = append(out, m)
		}
	}
	return out
}

// Close stops all servers and their relays, and returns what their logs complain
// of.
func (c *Cluster) Close() error {
	var errs []error
	for _, m := range slices.Concat(c.Members, c.apart) {
		if err := m.end(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}
