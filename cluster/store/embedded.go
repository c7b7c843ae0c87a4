package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
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
	etcd     *embed.Etcd
	client   *clientv3.Client
	lock     *os.File
	identity Identity
	dead     atomic.Bool // it has met an error that it can't handle
	removed  atomic.Bool // the others say that it is no member any more
	// mayReadAlone tells that what is stored here may be read without the others,
	// readsAlone that Open does so although it had met them.
	mayReadAlone bool
	readsAlone   atomic.Bool
}

// startEmbedded starts etcd in c.Dir and waits until it is ready. fail is told
// when it can't go on later.
func startEmbedded(ctx context.Context, c Config, fail func(error)) (*embedded, error) {
	if c.Dir == "" {
		return nil, errors.New("a directory for the data is needed")
	}
	if err := c.checkPeers(); err != nil {
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
	if err := e.prepare(ctx, c, fail); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// prepare looks at the directory and starts etcd as it demands.
func (e *embedded) prepare(ctx context.Context, c Config, fail func(error)) error {
	if err := install(c.Dir); err != nil {
		return err
	}
	data := HasData(c.Dir)
	var err error
	if e.identity, err = identify(c); err != nil {
		return err
	}
	members, err := checkFiles(c, e.identity)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := readdress(ctx, c, members); err != nil {
		return err
	}
	if c.LocalAfter > 0 {
		c.LocalAfter = max(0, c.LocalAfter-time.Since(began))
	}
	cfg, err := engineConfig(c, e.identity, len(members))
	if err != nil {
		return err
	}
	return e.start(ctx, c, cfg, data && len(members) > 1, fail)
}

// start starts etcd and waits until it is in touch with the quorum, or, if it is
// a member already and the others don't come, until local data can be read.
func (e *embedded) start(ctx context.Context, c Config, cfg *embed.Config, member bool, fail func(error)) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	died := make(chan error, 1)
	removed := make(chan struct{})
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(engineLog(c.Logger, func(err error) {
		e.dead.Store(true)
		select {
		case died <- err:
		default:
		}
		fail(err)
	}, func() {
		if !e.removed.Swap(true) {
			close(removed)
			fail(ErrRemoved)
		}
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
	var local <-chan time.Time
	e.mayReadAlone = member && c.LocalAfter >= 0 && e.identity.Started && e.identity.Previous == ""
	if e.mayReadAlone {
		t := time.NewTimer(c.LocalAfter)
		defer t.Stop()
		local = t.C
	}
	select {
	case <-e.etcd.Server.ReadyNotify():
	case <-local:
		c.Logger.Warn("the other members can't be reached; what is stored here can be read, nothing can be written", "at", e.dialled())
	case err := <-e.etcd.Err():
		return err
	case err := <-died:
		return causeOfDeath(err)
	case <-removed:
		return ErrRemoved
	case <-e.etcd.Server.StopNotify():
		return fmt.Errorf("%w: the engine stopped while it was starting", ErrUnavailable)
	case <-ctx.Done():
		return fmt.Errorf("%w: the engine was not in touch with the quorum in time: %w", ErrUnavailable, context.Cause(ctx))
	}
	e.client = newClient(e.etcd.Server, c.Name, 4*c.Election)
	return nil
}

// local tells that what this member has is to be read without the others.
func (e *embedded) local() bool { return e.readsAlone.Load() || e.alone() }

// alone tells that this member hasn't been in touch with a quorum yet.
func (e *embedded) alone() bool {
	select {
	case <-e.etcd.Server.ReadyNotify():
		return false
	default:
		return true
	}
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

// stop ends etcd and gives the directory back.
func (e *embedded) stop() error {
	var err error
	if e.etcd != nil {
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.handOver()
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

// handOver stops etcd's server, having moved etcd's leader elsewhere if it is
// here. etcd itself would wait for 6 s for members that don't answer.
func (e *embedded) handOver() {
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		_ = e.etcd.Server.TryTransferLeadershipOnShutdown() // the others elect one otherwise
	}()
	t := time.NewTimer(3 * time.Duration(e.etcd.Config().ElectionMs) * time.Millisecond)
	defer t.Stop()
	select {
	case <-moved:
	case <-t.C:
	}
	e.etcd.Server.HardStop()
	<-moved
}
