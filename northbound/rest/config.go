package rest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// Store takes what clients write. *store.Store implements it.
type Store interface {
	Create(ctx context.Context, obj model.Object) (int64, error)
	Update(ctx context.Context, kind model.Kind, key string, f func(old model.Object) (model.Object, error)) (int64, error)
	Delete(ctx context.Context, kind model.Kind, key string) (int64, error)
	Put(ctx context.Context, changes []store.Write) (int64, error)
	// Get reads from the store itself, not from the tables.
	Get(ctx context.Context, kind model.Kind, key string) (model.Object, error)
	// Ping asks the store for an answer.
	Ping(ctx context.Context) error
	// Linearizable returns a revision that contains every write that was
	// acknowledged before the call.
	Linearizable(ctx context.Context) (int64, error)
}

// Config says what a Server serves and where.
type Config struct {
	// Listen is the address of REST, host:port. Default 127.0.0.1:8181.
	Listen string
	// MetricsListen is the address of the metrics. Default 127.0.0.1:9300;
	// "-": none.
	MetricsListen string

	Store     Store
	DB        *state.DB
	Inspector Inspector
	// Waiting says why this server can't serve yet, while DB is not complete; nil:
	// it is reading what is stored.
	Waiting func() string
	// Trouble says why the store doesn't answer; nil, or empty: that is not known.
	Trouble func() string
	// Epochs raises the epoch on request; nil: there is no such call.
	Epochs Epochs
	// Adopter takes over what a former controller has left; nil: there is no such
	// call.
	Adopter Adopter
	// Members tells who is in the cluster; nil: there is no such call.
	Members Members
	// Cluster changes who is a member and makes backups; nil: there are no such
	// calls.
	Cluster  Cluster
	Accounts AccountsConfig
	TLS      TLSConfig

	// Logger gets the audit log of writes, and what goes wrong. Default
	// slog.Default().
	Logger *slog.Logger
	// Registry holds the metrics that are served; the server adds its own.
	// Default: a new one.
	Registry *prometheus.Registry
	// Version is the version of kvnet in the build metric.
	Version string

	// Limits bounds what clients can take.
	Limits Limits
}

// Limits bounds what clients can take. Zero values mean the defaults.
type Limits struct {
	// Body is the length of a body in bytes. Default 4 MiB.
	Body int64
	// Bodies is the sum of the lengths of all bodies that are being read.
	// Default 256 MiB.
	Bodies int64
	// Answers is the sum of the lengths of all answers of 64 KiB and more that
	// are not yet taken. A quarter of it may wait for room beside them. Default
	// 256 MiB.
	Answers int64
	// Concurrent is the number of reads, and of writes, that are worked on at a
	// time; the time in which bodies arrive and answers leave doesn't count.
	// Default 256.
	Concurrent int
	// Wait is how long a request waits for its turn. Default 5 s.
	Wait time.Duration
	// Header and Request are the times in which the header and the whole of a
	// request must have arrived. Default 10 s and 60 s.
	Header, Request time.Duration
	// Response is the time in which an answer must have been taken. Default
	// 90 s.
	Response time.Duration
	// Idle is how long a connection without a request is kept. Default 120 s.
	Idle time.Duration
	// Store is how long a call of the store may take. Default 5 s.
	Store time.Duration
	// OwnWrite is how long a write waits until this server can read it.
	// Default 2 s.
	OwnWrite time.Duration
	// Sync is how long a call of sync/rules waits for the nodes. Default 15 s.
	Sync time.Duration
	// Events bounds the streams of events.
	Events EventLimits
	// Shutdown is how long Serve waits for requests when it ends. Default 5 s.
	Shutdown time.Duration
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("the REST server needs a store")
	case c.DB == nil:
		return c, errors.New("the REST server needs a state")
	case c.Inspector == nil:
		return c, errors.New("the REST server needs an inspector")
	}
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8181")
	c.MetricsListen = cmp.Or(c.MetricsListen, "127.0.0.1:9300")
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Waiting == nil {
		c.Waiting = func() string { return "this server has not read yet what is stored" }
	}
	if c.Trouble == nil {
		c.Trouble = func() string { return "" }
	}
	c.Version = cmp.Or(c.Version, "unknown")
	l := &c.Limits
	l.Body = cmp.Or(l.Body, 4<<20)
	l.Bodies = cmp.Or(l.Bodies, 256<<20)
	l.Answers = cmp.Or(l.Answers, 256<<20)
	l.Concurrent = cmp.Or(l.Concurrent, 256)
	l.Wait = cmp.Or(l.Wait, 5*time.Second)
	l.Header = cmp.Or(l.Header, 10*time.Second)
	l.Request = cmp.Or(l.Request, 60*time.Second)
	l.Response = cmp.Or(l.Response, 90*time.Second)
	l.Idle = cmp.Or(l.Idle, 120*time.Second)
	l.Store = cmp.Or(l.Store, 5*time.Second)
	l.OwnWrite = cmp.Or(l.OwnWrite, 2*time.Second)
	l.Sync = cmp.Or(l.Sync, 15*time.Second)
	l.Events = l.Events.withDefaults()
	l.Shutdown = cmp.Or(l.Shutdown, 5*time.Second)
	return c, nil
}
