package gossip

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Gossip is this server's part in the gossip.
type Gossip struct {
	c        Config
	address  string // gossip address that the others know
	id       identity
	ml       *memberlist.Memberlist
	view     *view
	calls    *calls
	sessions *sessions
	notices  chan notice
	seeds    []string // remembered from earlier lives

	gossipInterval time.Duration

	closing context.Context
	stop    context.CancelCauseFunc
	wg      sync.WaitGroup
	once    sync.Once
	closed  chan struct{}

	mu   sync.Mutex
	own  Meta
	size int
}

// Start listens and begins to look for the servers in c.Join. It waits for none
// of them. ctx bounds the start only.
func Start(ctx context.Context, c Config) (*Gossip, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &Gossip{
		c:       c,
		view:    newView(c.Name),
		notices: make(chan notice, 64),
		closed:  make(chan struct{}),
		own:     c.Meta,
	}
	var instance [8]byte
	_, _ = rand.Read(instance[:]) // never fails
	g.own.Instance = cmp.Or(binary.BigEndian.Uint64(instance[:]), 1)
	g.id = identity{name: c.Name, instance: g.own.Instance, key: c.Key}
	g.closing, g.stop = context.WithCancelCause(context.Background())
	g.calls = newCalls(g.id, g.view, g.send)
	if c.SeedFile != "" {
		if g.seeds, err = readSeeds(c.SeedFile); err != nil {
			c.Logger.Warn("the addresses of other servers that were remembered can't be read", "err", err)
		}
	}

	mc := base()
	presets[c.Preset](mc)
	g.gossipInterval = mc.GossipInterval
	mc.Name = c.Name
	mc.SecretKey = c.Key
	mc.Logger = log.New(lines{g}, "", 0)
	d := delegate{g}
	mc.Delegate, mc.Events, mc.Alive, mc.Merge, mc.Conflict, mc.Ping = d, d, d, d, d, d
	if c.tuning.noProbes {
		mc.ProbeInterval = 0
	}
	t, err := g.listen(ctx, mc)
	if err != nil {
		return nil, err
	}
	g.sessions = &sessions{
		id: g.id, view: g.view, dial: t.DialTimeout,
		refused: g.refuse, lost: c.Observer.SessionLost,
		open: map[string]*session{}, dialing: map[string]bool{},
	}
	t.start(
		func(conn net.Conn) { g.sessions.accept(g.closing, conn) },
		func(addr string) {
			g.refuse(&RefusedError{Address: addr, Reason: TooManyStrangers, Text: "too many connections have not said anything yet"})
		},
	)
	mc.Transport = t
	if g.ml, err = memberlist.Create(mc); err != nil {
		_ = t.Shutdown()
		return nil, fmt.Errorf("start the gossip: %w", err)
	}
	g.wg.Go(g.announce)
	g.wg.Go(func() { g.calls.run(g.closing) })
	if !c.tuning.noSessions {
		g.wg.Go(func() { g.sessions.run(g.closing) })
	}
	g.wg.Go(func() { g.keepJoined(g.closing) })
	return g, nil
}

// listen opens the transport and finds out which address the others are told.
func (g *Gossip) listen(ctx context.Context, mc *memberlist.Config) (t *transport, err error) {
	host, port, err := splitHostPort(g.c.Listen)
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	mc.BindAddr, mc.BindPort = host, int(port)
	advertised, advertisedPort := g.c.Advertise, 0
	if h, p, err := splitHostPort(advertised); err == nil {
		advertised, advertisedPort = h, int(p)
	}
	listen, err := netip.ParseAddr(host)
	if err == nil && advertised == "" {
		if listen.IsUnspecified() && !listen.Is4() {
			return nil, fmt.Errorf("gossip on %s: it must be told by which host the others reach this server (advertise)", g.c.Listen)
		}
		if !listen.IsUnspecified() {
			advertised = host
		}
	}
	if advertised != "" {
		if mc.AdvertiseAddr, err = g.resolveOne(ctx, advertised); err != nil {
			return nil, fmt.Errorf("advertise %q: %w", advertised, err)
		}
	}
	if g.c.Transport != nil {
		t = newTransport(g.c.Transport)
	} else if t, mc.BindPort, err = newSockets(host, int(port), mc.Logger); err != nil {
		return nil, err
	}
	mc.AdvertisePort = cmp.Or(advertisedPort, mc.BindPort)
	ip, p, err := t.FinalAdvertiseAddr(mc.AdvertiseAddr, mc.AdvertisePort)
	if err != nil {
		_ = t.NodeAwareTransport.Shutdown()
		return nil, fmt.Errorf("find the address by which others reach this server (advertise): %w", err)
	}
	g.address = net.JoinHostPort(ip.String(), strconv.Itoa(p))
	return t, nil
}

// Name is this server's name.
func (g *Gossip) Name() string { return g.c.Name }

// Address is the gossip address that the others know, IP and port.
func (g *Gossip) Address() string { return g.address }

// Instance is the random number of this life of the process.
func (g *Gossip) Instance() uint64 { return g.id.instance }

// Members returns all servers that this one knows, itself too, sorted by name.
func (g *Gossip) Members() []Member {
	members, _ := g.view.members()
	return members
}

// Changes returns a channel that is closed at the next change of Members. Who
// asks for the channel first and for the members then misses nothing.
func (g *Gossip) Changes() <-chan struct{} {
	_, changed := g.view.members()
	return changed
}

// ClusterID is the id of the cluster that this server belongs to, or empty.
func (g *Gossip) ClusterID() string { return g.meta().ClusterID }

func (g *Gossip) meta() Meta {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own
}

// SetCluster says which cluster this server belongs to from now on, once it is
// in one. A server never changes its cluster.
func (g *Gossip) SetCluster(id string) error {
	for _, m := range alive(g.Members()) {
		if m.Name != g.c.Name && m.Meta.ClusterID != "" && m.Meta.ClusterID != id {
			return fmt.Errorf("set the cluster %q: the live member %q belongs to the cluster %q", id, m.Name, m.Meta.ClusterID)
		}
	}
	return g.setMeta(func(m *Meta) error {
		if m.ClusterID != "" && m.ClusterID != id || id == "" {
			return fmt.Errorf("set the cluster %q: this server belongs to the cluster %q", id, m.ClusterID)
		}
		m.ClusterID = id
		return nil
	})
}

// UpdateMeta changes what the others know of this server. f must not change
// ClusterID and Instance.
func (g *Gossip) UpdateMeta(f func(m *Meta)) error {
	return g.setMeta(func(m *Meta) error {
		id, instance := m.ClusterID, m.Instance
		f(m)
		m.ClusterID, m.Instance = id, instance
		return nil
	})
}

func (g *Gossip) setMeta(f func(m *Meta) error) error {
	g.mu.Lock()
	m := g.own
	err := f(&m)
	if err == nil {
		_, err = m.encode()
	}
	same := m == g.own
	if err == nil {
		g.own = m
	}
	g.mu.Unlock()
	if err != nil {
		return fmt.Errorf("gossip metadata: %w", err)
	}
	if same {
		return nil
	}
	if g.closing.Err() != nil {
		return ErrClosed
	}
	for range 3 {
		if g.publish() {
			break
		}
	}
	return nil // if the others don't know yet, keepJoined tells them
}

// publish tells the others what they shall know of this server. It returns true
// if nothing is left to tell: memberlist loses an update that coincides with an
// objection to a rumour of this server's death.
func (g *Gossip) publish() bool {
	told := func() bool {
		m, _ := g.view.get(g.c.Name)
		return m.Meta == g.meta()
	}
	if !told() {
		// A timeout means only that the news is still on its way.
		_ = g.ml.UpdateNode(4 * g.gossipInterval)
	}
	return told()
}

// SetSize says how many servers the cluster has, so that missing ones are looked
// for.
func (g *Gossip) SetSize(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.size = n
}

// Forget drops a member that is not alive, because it belongs to the cluster no
// longer.
func (g *Gossip) Forget(name string) { g.view.forget(name) }

// Call sends a request of a kind to the live member of a name and returns its
// answer. Without a deadline in ctx it waits for 5 s.
func (g *Gossip) Call(ctx context.Context, member, kind string, payload []byte) ([]byte, error) {
	began := time.Now()
	b, err := g.calls.call(ctx, g.closing.Done(), member, kind, payload)
	g.c.Observer.Called(kind, time.Since(began), err)
	return b, err
}

// Handle sets who answers requests of a kind; nil: nobody does. Handlers run on
// a bounded number of goroutines and must heed their context.
func (g *Gossip) Handle(kind string, h Handler) { g.calls.handle(kind, h) }

// send delivers a frame to a member.
func (g *Gossip) send(to Member, b []byte) error {
	n, err := node(to)
	if err != nil {
		return err
	}
	return g.ml.SendReliable(n, b)
}

func node(m Member) (*memberlist.Node, error) {
	a, err := netip.ParseAddrPort(m.Address)
	if err != nil {
		return nil, fmt.Errorf("address of member %q: %w", m.Name, err)
	}
	return &memberlist.Node{Name: m.Name, Addr: a.Addr().AsSlice(), Port: a.Port()}, nil
}

// closeTime bounds Close if its context doesn't.
const closeTime = 2 * time.Second

// Close takes leave of the others and ends everything. It returns early when ctx
// ends, or after two seconds; what is left then ends by itself soon.
func (g *Gossip) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	g.once.Do(func() {
		go func() {
			defer close(g.closed)
			g.leave()
			g.shutdown()
		}()
	})
	select {
	case <-g.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the gossip: %w", context.Cause(ctx))
	}
}

// leave tells the others that this server goes.
func (g *Gossip) leave() {
	bye, _ := frame{kind: frameLeave, from: g.c.Name, instance: g.id.instance}.encode()
	var told sync.WaitGroup
	for _, m := range alive(g.Members()) {
		n, err := node(m)
		if m.Name == g.c.Name || err != nil {
			continue
		}
		// A packet is there at once, a stream is there for sure.
		_ = g.ml.SendBestEffort(n, bye)
		told.Go(func() { _ = g.ml.SendReliable(n, bye) })
	}
	// What memberlist says of it to others is no matter of waiting: the members
	// have been told already.
	_ = g.ml.Leave(2 * g.gossipInterval)
	done := make(chan struct{})
	go func() {
		told.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * g.gossipInterval): // somebody doesn't listen; shutdown ends the streams
	}
}

// shutdown ends everything without a word to the others.
func (g *Gossip) shutdown() {
	g.stop(ErrClosed)
	if err := g.ml.Shutdown(); err != nil && !errors.Is(err, net.ErrClosed) {
		g.c.Logger.Warn("the gossip has not been closed properly", "err", err)
	}
	g.wg.Wait()
}

// notice is something to log, away from memberlist's callbacks.
type notice struct {
	level slog.Level
	key   string // what is the same is said once in a while
	text  string
	args  []any
}
