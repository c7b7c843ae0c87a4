package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

const (
	// maxRequest bounds one transaction. A REST body has 4 MiB.
	maxRequest = 10 << 20
	// compactAfter is how long old revisions are kept, and so how far a watch
	// may fall behind before everything is listed anew.
	compactAfter = "5m"
	// stopTimeout bounds how long the engine may take to stop.
	stopTimeout = 15 * time.Second
	// stopTimeoutDead is the same for one that has met an error that it can't
	// handle: it may hang, and its files are as they are.
	stopTimeoutDead = time.Second
	// segment is the size of the pieces in which the engine allocates its log.
	segment = 64 << 20
)

// embedded is an etcd server in this process.
type embedded struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *os.File
	dead   atomic.Bool // it has met an error that it can't handle
}

// startEmbedded starts etcd in c.Dir and waits until it is ready. fail is told
// when it can't go on later.
func startEmbedded(ctx context.Context, c Config, fail func(error)) (*embedded, error) {
	if c.Dir == "" {
		return nil, errors.New("a directory for the data is needed")
	}
	cfg, err := engineConfig(c)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(engineDir(c), 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}
	e := &embedded{lock: lock}
	if err := e.start(ctx, c, cfg, fail); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

func (e *embedded) start(ctx context.Context, c Config, cfg *embed.Config, fail func(error)) error {
	if err := checkFiles(c); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	died := make(chan error, 1)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(engineLog(c.Logger, func(err error) {
		e.dead.Store(true)
		select {
		case died <- err:
		default:
		}
		fail(err)
	}))
	started := make(chan result, 1)
	go func() {
		// If the engine dies, by a panic or as fatalHook makes it, this is why.
		r := result{err: fmt.Errorf("%w: the engine could not read its files", ErrDamaged)}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%w (%v)", r.err, p)
			}
			started <- r
		}()
		etcd, err := embed.StartEtcd(cfg)
		r = result{etcd, err}
	}()
	select {
	case r := <-started:
		if r.err != nil {
			select {
			case cause := <-died:
				return causeOfDeath(cause)
			default:
				return r.err
			}
		}
		e.etcd = r.etcd
	case err := <-died:
		e.abandon(started, c.Logger)
		return causeOfDeath(err)
	case <-ctx.Done():
		e.abandon(started, c.Logger)
		return fmt.Errorf("%w: the engine did not start in time: %w", ErrUnavailable, context.Cause(ctx))
	}
	select {
	case <-e.etcd.Server.ReadyNotify():
	case err := <-e.etcd.Err():
		return err
	case err := <-died:
		return causeOfDeath(err)
	case <-e.etcd.Server.StopNotify():
		return fmt.Errorf("%w: the engine stopped while it was starting", ErrUnavailable)
	case <-ctx.Done():
		return fmt.Errorf("%w: the engine was not ready in time: %w", ErrUnavailable, context.Cause(ctx))
	}
	e.client = v3client.New(e.etcd.Server)
	return nil
}

// result is what became of a start.
type result struct {
	etcd *embed.Etcd
	err  error
}

// abandon leaves a start alone that isn't waited for any more. The engine may
// still come up, and the directory is its own until it has gone again.
func (e *embedded) abandon(started <-chan result, log *slog.Logger) {
	lock := e.lock
	e.lock = nil
	go func() {
		if r := <-started; r.err == nil {
			r.etcd.Close()
		}
		if err := lock.Close(); err != nil {
			log.Warn("could not unlock the data directory", "err", err)
		}
	}()
}

// causeOfDeath tells a full disk from files that make no sense.
func causeOfDeath(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// engineDir is the engine's own directory.
func engineDir(c Config) string { return filepath.Join(c.Dir, "etcd") }

// engineConfig is the configuration of a single embedded member.
func engineConfig(c Config) (*embed.Config, error) {
	cfg := embed.NewConfig()
	listen, err := peerURL(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("the store's address to listen on: %w", err)
	}
	advertise, err := peerURL(c.Advertise)
	if err != nil {
		return nil, fmt.Errorf("the store's address for other members: %w", err)
	}
	cfg.Name = url.QueryEscape(c.Name) // "=" and "," have a meaning in a list of members
	cfg.Dir = engineDir(c)
	cfg.ListenPeerUrls = []url.URL{listen}
	cfg.AdvertisePeerUrls = []url.URL{advertise}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	cfg.EnableGRPCGateway = false
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// There is nobody whose messages could be late: elect at once.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.InitialElectionTickAdvance = true
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = compactAfter
	cfg.QuotaBackendBytes = c.Quota + c.tuning.headroom
	cfg.MaxTxnOps = uint(c.tuning.maxOps)
	cfg.MaxRequestBytes = maxRequest
	return cfg, nil
}

func peerURL(addr string) (url.URL, error) {
	u, err := url.Parse("http://" + addr)
	if err != nil || u.Host != addr || u.Port() == "" {
		return url.URL{}, fmt.Errorf("%q is not of the form host:port", addr)
	}
	return *u, nil
}

// stop ends etcd and gives the directory back.
func (e *embedded) stop() error {
	var err error
	if e.etcd != nil {
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.etcd.Close()
		}()
		patience := stopTimeout
		if e.dead.Load() {
			patience = stopTimeoutDead
		}
		t := time.NewTimer(patience)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
			// Its files stay locked until the process ends.
			return fmt.Errorf("%w: the engine did not stop in %s", ErrUnavailable, patience)
		}
	}
	if e.lock != nil {
		err = e.lock.Close()
	}
	return err
}
