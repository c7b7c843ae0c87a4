package store

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Config says where the store is. With Endpoints it is an external etcd
// cluster, without it is embedded in this process.
type Config struct {
	// Dir is the directory of the embedded engine. It is made if it doesn't
	// exist.
	Dir string
	// Name is this server's name among the members. Default "kvnet".
	Name string
	// Listen is the address for other members, host:port. Default
	// 127.0.0.1:2380. No port is opened for clients.
	Listen string
	// Advertise is the address by which other members reach Listen. Default
	// Listen.
	Advertise string
	// Cluster is the plan to found a cluster or to join one, for a server that
	// has no data yet.
	Cluster Cluster
	// Locate finds out, before the engine starts on the data of one of several
	// members, where the others are now. It gets the address of each member as it
	// was noted last, by name, this server's own too, and returns the address of
	// those that it knows: members that have all moved don't find each other
	// otherwise. It must return when ctx ends; the time that it takes is part of
	// LocalAfter. nil: they are where they were.
	Locate func(ctx context.Context, noted map[string]string) map[string]string
	// PeerCertFile, PeerKeyFile and PeerCAFile are PEM files for TLS between
	// members: all three or none. Each side shows the certificate, and the CA,
	// one of the cluster's own, must have signed it. They are read again for
	// each connection.
	PeerCertFile, PeerKeyFile, PeerCAFile string
	// AllowPlaintextPeers permits to listen without TLS on an address that other
	// machines reach.
	AllowPlaintextPeers bool
	// Heartbeat and Election are the timers among several members. They must be
	// equal on all of them. Default 50 ms and 500 ms, as fits servers that are
	// near each other; 100 ms and 1 s are better over a slow network.
	Heartbeat, Election time.Duration
	// LocalAfter is how long Open waits for the quorum of a cluster that this
	// server is a member of before it goes on with what is stored here: reads
	// work, writes fail until the quorum is there. Default 5 s; negative: wait
	// as long as Open may take.
	LocalAfter time.Duration
	// Quota limits the embedded engine's file in bytes. Default 2 GiB.
	Quota int64
	// MinFree is the space in bytes on the disk of Dir below which clients'
	// writes are refused. The engine allocates its log in pieces of 64 MiB and
	// can't go on when it doesn't get one. Default 128 MiB; negative: no check.
	MinFree int64

	// Endpoints are the URLs of an external etcd cluster.
	Endpoints []string
	// CertFile, KeyFile and CAFile are PEM files for Endpoints with https.
	CertFile, KeyFile, CAFile string
	// Username and Password are credentials for Endpoints, if it wants some.
	Username, Password string

	// Logger gets what goes wrong. Default slog.Default().
	Logger *slog.Logger

	// Observer hears of every operation; nil: nobody does.
	Observer Observer

	// OpTimeout is the deadline of an operation whose context has none. Default
	// 5 s.
	OpTimeout time.Duration
	// OpenTimeout is the deadline of Open if its context has none. Default 30 s.
	OpenTimeout time.Duration

	tuning tuning
}

// tuning holds what only tests and Recover change.
type tuning struct {
	headroom    int64         // of the engine's hard quota over Quota
	listLimit   int64         // keys in one page of a listing
	backoff     time.Duration // first pause after a lost watch
	upkeep      time.Duration // between two looks at the space
	maxOps      int           // operations in one transaction
	check       time.Duration // between two looks at the revision of the store
	tables      func(tables) tables
	free        func(dir string) (int64, bool) // space on the disk
	beforeList  func()                         // called before each listing
	beforeWatch func()                         // called before each watch is started
	forceNew    bool                           // make a cluster of one of the data
	catchUp     uint64                         // entries that the engine keeps for members that lag
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "kvnet")
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:2380")
	c.Advertise = cmp.Or(c.Advertise, c.Listen)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.Election = cmp.Or(c.Election, defaultElection)
	c.LocalAfter = cmp.Or(c.LocalAfter, 5*time.Second)
	c.Quota = cmp.Or(c.Quota, 2<<30)
	c.MinFree = cmp.Or(c.MinFree, 128<<20)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.OpTimeout = cmp.Or(c.OpTimeout, 5*time.Second)
	c.OpenTimeout = cmp.Or(c.OpenTimeout, 30*time.Second)
	c.tuning.headroom = cmp.Or(c.tuning.headroom, 64<<20)
	c.tuning.listLimit = cmp.Or(c.tuning.listLimit, 256)
	c.tuning.backoff = cmp.Or(c.tuning.backoff, 100*time.Millisecond)
	c.tuning.upkeep = cmp.Or(c.tuning.upkeep, 30*time.Second)
	c.tuning.check = cmp.Or(c.tuning.check, 10*time.Second)
	if c.tuning.free == nil {
		c.tuning.free = freeBytes
	}
	if c.tuning.maxOps == 0 {
		c.tuning.maxOps = 16384
		if len(c.Endpoints) > 0 {
			c.tuning.maxOps = 128 // the default limit of an etcd server
		}
	}
	return c
}
