package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"
)

// Config says who this server is and where it finds the others.
type Config struct {
	// Name is this server's name, unique among the members.
	Name string
	// Listen is the address of the gossip, an IP address and a port, for UDP and
	// TCP. Port 0 takes a free one.
	Listen string
	// Advertise is the host, with or without a port, by which others reach
	// Listen. It may be a name; the address it has at the start is told to the
	// others. Default: Listen, or the host's own address where that is
	// unspecified.
	Advertise string
	// Join are gossip addresses of other servers, host:port. This server's own
	// may be among them. Names are resolved anew at each attempt.
	Join []string
	// Preset is the timing. Default LAN.
	Preset Preset
	// Key is the secret of the members, 32 bytes (ReadKey). It may be missing
	// only where Listen is on loopback (CheckKey).
	Key []byte
	// ClusterID is the id of the cluster that this server belongs to. Empty: of
	// none yet (SetCluster).
	ClusterID string
	// Meta is what the others shall know of this server. ClusterID and Instance
	// are filled in by Start.
	Meta Meta
	// SeedFile remembers the addresses of the members, so that a server finds
	// the others also when those in Join are gone. Empty: nothing is kept.
	SeedFile string
	// Logger gets changes of the view and refusals. Default slog.Default().
	Logger *slog.Logger
	// Observer hears of what happens, for figures; nil: nobody does.
	Observer Observer
	// Transport carries the gossip. nil: sockets on Listen.
	Transport memberlist.Transport

	tuning tuning
}

// tuning holds what only tests change.
type tuning struct {
	lookup     func(ctx context.Context, host string) ([]netip.Addr, error)
	noSessions bool
	noProbes   bool // memberlist looks for no failed member
}

// Observer hears of what the gossip does, for figures. It must not block.
type Observer interface {
	// Members is called with the new numbers when the view has changed.
	Members(alive, failed, left int)
	// Refused is called when somebody is refused.
	Refused(reason Refusal)
	// Rejoined is called after an attempt to reach missing members.
	Rejoined(err error)
	// SessionLost is called when the session with a member has ended and its
	// address was dialled again; dead says that nobody listened there.
	SessionLost(dead bool)
	// Called is called when a Call has ended.
	Called(kind string, took time.Duration, err error)
}

type nobody struct{}

func (nobody) Members(int, int, int)               {}
func (nobody) Refused(Refusal)                     {}
func (nobody) Rejoined(error)                      {}
func (nobody) SessionLost(bool)                    {}
func (nobody) Called(string, time.Duration, error) {}

// maxName is the longest name of a server in bytes.
const maxName = 128

func (c Config) withDefaults() (Config, error) {
	c.Preset = cmp.Or(c.Preset, LAN)
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:7946")
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.tuning.lookup == nil {
		c.tuning.lookup = lookup
	}
	if err := checkName(c.Name); err != nil {
		return c, err
	}
	if _, ok := presets[c.Preset]; !ok {
		return c, fmt.Errorf("gossip preset: %q is neither %q nor %q", c.Preset, LAN, Rack)
	}
	if len(c.Key) != 0 && len(c.Key) != keySize {
		return c, fmt.Errorf("gossip key: it has %d bytes instead of %d", len(c.Key), keySize)
	}
	if c.Transport == nil {
		if err := CheckKey(c.Listen, c.Key); err != nil {
			return c, err
		}
	}
	for _, a := range c.Join {
		if _, _, err := splitHostPort(a); err != nil {
			return c, fmt.Errorf("join: %w", err)
		}
	}
	c.Meta.ClusterID = c.ClusterID
	if _, err := c.Meta.encode(); err != nil {
		return c, fmt.Errorf("gossip metadata: %w", err)
	}
	return c, nil
}

// CheckName refuses names that can't be sent or would garble a log.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a server needs one")
	case len(name) > maxName:
		return fmt.Errorf("it has %d bytes; at most %d are possible", len(name), maxName)
	case !printable(name) || strings.ContainsAny(name, "/"):
		return fmt.Errorf("%q has characters that no server's name can have: all but / and control characters are possible", name)
	}
	return nil
}

func checkName(name string) error {
	if err := CheckName(name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	return nil
}

// printable says that s is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// splitHostPort takes host:port apart; the port must be a number.
func splitHostPort(addr string) (host string, port uint16, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no address of the form HOST:PORT", addr)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || host == "" {
		return "", 0, fmt.Errorf("%q is no address of the form HOST:PORT", addr)
	}
	return host, uint16(n), nil
}
