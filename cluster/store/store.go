package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/internal/pause"
	"kvnet/model"
	"kvnet/model/state"
)

// Store writes objects and keeps a state.DB up to date. Its methods may be
// called by any number of goroutines.
type Store struct {
	c      Config
	log    *slog.Logger
	db     tables
	client *clientv3.Client
	engine *embedded // nil: external

	// life ends with Close, or with the reason why the store can't go on.
	life        context.Context
	end         context.CancelCauseFunc
	failed      chan struct{}
	closeOnce   sync.Once
	closeErr    error
	failOnce    sync.Once
	work        sync.WaitGroup // the watch and the upkeep
	kick        chan struct{}  // wakes the upkeep
	watchesLost atomic.Int64

	mu            sync.Mutex
	leader        Term
	leaderChanged chan struct{}
	breakWatch    context.CancelFunc // ends the present watch, which starts anew
	compacted     int64              // only of makeRoom
	unreadable    map[string]error   // keys whose last value couldn't be read
}

// tables is what the watch needs of a state.DB.
type tables interface {
	Apply(revision int64, events []state.Event) error
	Replace(revision int64, objects []model.Object) error
	Snapshot() state.Snapshot
}

// errClosed is why life ended when Close was called.
var errClosed = fmt.Errorf("%w: it was closed", ErrUnavailable)

// Open starts the embedded engine, or connects to the external one, reads
// everything into db and keeps db up to date until Close. It gives up at ctx's
// deadline, or Config.OpenTimeout if it has none.
func Open(ctx context.Context, c Config, db *state.DB) (*Store, error) {
	c = c.withDefaults()
	ctx, cancel := deadline(ctx, c.OpenTimeout)
	defer cancel()
	s := &Store{
		c: c, log: c.Logger, db: db,
		failed:        make(chan struct{}),
		kick:          make(chan struct{}, 1),
		leaderChanged: make(chan struct{}),
		unreadable:    map[string]error{},
	}
	if c.tuning.tables != nil {
		s.db = c.tuning.tables(db)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	where := fmt.Sprintf("directory %q", s.c.Dir)
	if len(s.c.Endpoints) > 0 {
		where = fmt.Sprintf("etcd at %q", s.c.Endpoints)
		s.client, err = dial(s.life, s.c)
	} else {
		s.engine, err = startEmbedded(ctx, s.c, s.fail)
		if err == nil {
			s.client = s.engine.client
			if !s.engine.alone() {
				s.recoverSpace(ctx)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("open the store in %s: %w", where, err)
	}
	ctx, cancel := s.during(ctx)
	defer cancel()
	revision, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("open the store in %s: %w", where, s.reason(err))
	}
	s.work.Go(func() { s.follow(s.life, revision) })
	if s.engine != nil {
		s.engine.readsAlone.Store(false)
		s.work.Go(func() { s.upkeep(s.life) })
		s.work.Go(func() { s.guard(s.life) })
		s.work.Go(func() { s.announceAddress(s.life) })
		s.work.Go(func() { s.boundSilence(s.life) })
		s.work.Go(func() { s.nudge(s.life) })
	}
	return nil
}

// begin finds out which cluster this is and reads everything. Another server may
// die just then: while the store doesn't answer it is asked again, and after
// Config.LocalAfter a member reads what it has, as one that met nobody.
func (s *Store) begin(ctx context.Context) (revision int64, err error) {
	local := time.Now().Add(s.c.LocalAfter)
	for asked := false; ; asked = true {
		if err = s.settle(ctx, time.Now()); err == nil {
			revision, err = s.load(ctx, true)
		}
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNoSpace) || s.life.Err() != nil || !pause.For(ctx, s.c.tuning.backoff) {
			return revision, err
		}
		if !asked {
			s.log.Info("the store did not answer while it was opened; asking again", "reason", err)
		}
		if s.engine != nil && s.engine.mayReadAlone && time.Now().After(local) && !s.engine.readsAlone.Swap(true) {
			s.log.Warn("the other members are gone again; what is stored here can be read, nothing can be written", "at", s.engine.dialled())
		}
	}
}

// Close ends the watch and stops the embedded engine.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	s.end(errClosed)
	s.work.Wait()
	var err error
	if s.client != nil {
		if err = s.client.Close(); errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	if s.engine != nil {
		err = errors.Join(err, s.engine.stop())
	}
	return err
}

// Failed is closed when the embedded engine can't go on, for example because the
// disk couldn't be written. Err says why. Reads of the state.DB still work, but
// only a restart of the process brings the store back.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err is why the store can't go on, or nil.
func (s *Store) Err() error {
	select {
	case <-s.failed:
		return context.Cause(s.life)
	default:
		return nil
	}
}

// guard notices when the engine stops by itself.
func (s *Store) guard(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.engine.etcd.Server.StopNotify():
		s.fail(errors.New("the engine has stopped by itself"))
	}
}

// Revision asks the store, not the local copy, for its present revision.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	return s.op(ctx, OpRead, "ask for the revision", s.revision)
}

// Ping returns nil if the store answers with what is in force.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.op(ctx, OpRead, "ask the store", s.revision)
	return err
}

// fail ends the life of a store that can't go on.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		if s.life.Err() != nil {
			return
		}
		if errors.Is(err, syscall.ENOSPC) && !errors.Is(err, ErrNoSpace) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		if errors.Is(err, ErrRemoved) {
			s.log.Error("the store has ended", "err", err)
		} else {
			s.log.Error("the store has failed; kvnet must be started again", "err", err)
		}
		s.end(fmt.Errorf("%w: %w", ErrUnavailable, err))
		close(s.failed)
	})
}

// op runs one operation with a deadline and says in its error what it was.
func (s *Store) op(ctx context.Context, op Op, doing string, f func(context.Context) (int64, error)) (int64, error) {
	began := time.Now()
	rev, err := s.run(ctx, doing, f)
	if s.c.Observer != nil {
		s.c.Observer.Operation(op, time.Since(began), err)
	}
	return rev, err
}

func (s *Store) run(ctx context.Context, doing string, f func(context.Context) (int64, error)) (int64, error) {
	ctx, cancel := deadline(ctx, s.c.OpTimeout)
	defer cancel()
	ctx, release := s.during(ctx)
	defer release()
	rev, err := f(ctx)
	var caller *callerError
	switch {
	case err == nil:
		return rev, nil
	case errors.As(err, &caller):
		return 0, caller.error
	}
	return 0, fmt.Errorf("%s: %w", doing, s.reason(err))
}

// reason replaces the trace of a store that has ended by why it ended.
func (s *Store) reason(err error) error {
	if errors.Is(err, ErrUnavailable) && s.life.Err() != nil {
		return context.Cause(s.life)
	}
	return err
}

// during gives a context that ends with ctx or with the store's life.
func (s *Store) during(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// deadline gives a context with a deadline.
func deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
