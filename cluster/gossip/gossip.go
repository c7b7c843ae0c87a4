package gossip

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log"
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
	publishing     chan struct{} // full while the others are told of this server

	closing context.Context
	stop    context.CancelCauseFunc
	wg      sync.WaitGroup
	once    sync.Once
	closed  chan struct{}
	trouble trouble

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

		publishing: make(chan struct{}, 1),
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
		open: map[string]*session{}, dialing: map[string]uint64{},
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
