package store

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"
)

// Cluster is a plan to found a cluster or to join one. It counts only until this
// server has data; after that, the data says who the members are. The zero value
// founds a cluster of one.
type Cluster struct {
	// ID is the random name of the cluster. A server with data of another
	// cluster refuses to start.
	ID string `json:"id"`
	// Members are the addresses, host:port, by which the members reach each
	// other, by name; this server's own is one of them. A name as host is better
	// than an IP address: it may move.
	Members map[string]string `json:"members,omitempty"`
	// Joining says that the cluster exists and has taken this server in by
	// AddLearner, which returns the plan to use.
	Joining bool `json:"joining,omitempty"`
}

// check tells what makes no sense in a plan for the server of that name.
func (p Cluster) check(name string) error {
	if len(p.Members) == 0 {
		if p.Joining {
			return errors.New("the plan to join a cluster names no members")
		}
		return nil
	}
	if p.ID == "" {
		return errors.New("the plan for the cluster has no cluster id")
	}
	if _, ok := p.Members[name]; !ok {
		return fmt.Errorf("the plan for the cluster doesn't name this server, %q, but %q", name, slices.Sorted(maps.Keys(p.Members)))
	}
	seen := map[string]string{}
	for _, n := range slices.Sorted(maps.Keys(p.Members)) {
		addr := p.Members[n]
		if _, err := peerURL("http", addr); err != nil {
			return fmt.Errorf("the plan for the cluster: the address of %q: %w", n, err)
		}
		if other, ok := seen[addr]; ok {
			return fmt.Errorf("the plan for the cluster: %q and %q have the same address %s", other, n, addr)
		}
		seen[addr] = n
	}
	return nil
}

// The timers of the engine, for one member and for several.
const (
	// With one member there is nobody whose messages could be late: it elects
	// itself at once. The timers of several make its start 0.2 to 0.4 s slower.
	aloneHeartbeat = 20 * time.Millisecond
	aloneElection  = 200 * time.Millisecond
	// Among several, a dead engine's leader is replaced after 0.6 to 0.8 s
	// (measured). Ten heartbeats have to be missed in a row before an election,
	// so that a busy processor doesn't cause one.
	defaultHeartbeat = 50 * time.Millisecond
	defaultElection  = 500 * time.Millisecond
)

// maxLearners is how many members may be on their way in at one time. etcd's
// default of one lets a new server that never starts block all others.
const maxLearners = 5

// secure tells whether members speak TLS to each other.
func (c Config) secure() bool {
	return c.PeerCertFile != "" || c.PeerKeyFile != "" || c.PeerCAFile != ""
}

func (c Config) scheme() string {
	if c.secure() {
		return "https"
	}
	return "http"
}

// checkPeers refuses what would let strangers into the cluster. Whoever can
// speak to a member's port unauthenticated can write the store.
func (c Config) checkPeers() error {
	if c.secure() {
		for name, file := range map[string]string{"certificate": c.PeerCertFile, "key": c.PeerKeyFile, "CA": c.PeerCAFile} {
			if file == "" {
				return fmt.Errorf("TLS between members needs a certificate, a key and a CA file: there is no %s file", name)
			}
		}
		return nil
	}
	if c.AllowPlaintextPeers {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("the store's address to listen on: %q is not of the form host:port", c.Listen)
	}
	if c.onLoopback() {
		return nil
	}
	return fmt.Errorf("the store's address to listen on, %s, can be reached from other machines: that needs TLS between members, or the explicit permission to do without", c.Listen)
}

// onLoopback tells whether only this machine reaches the member's port.
func (c Config) onLoopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
