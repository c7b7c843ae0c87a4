package rest

import (
	"context"
	"log/slog"
	"testing"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// faultyStore answers everything with its error, or at its revision.
type faultyStore struct {
	err      error
	revision int64
	block    chan struct{} // if not nil, calls wait for it
}

func (f *faultyStore) answer(ctx context.Context) (int64, error) {
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return 0, store.ErrUnavailable
		}
	}
	return f.revision, f.err
}

func (f *faultyStore) Create(ctx context.Context, _ model.Object) (int64, error) {
	return f.answer(ctx)
}

func (f *faultyStore) Update(ctx context.Context, _ model.Kind, _ string, _ func(model.Object) (model.Object, error)) (int64, error) {
	return f.answer(ctx)
}

func (f *faultyStore) Delete(ctx context.Context, _ model.Kind, _ string) (int64, error) {
	return f.answer(ctx)
}

func (f *faultyStore) Put(ctx context.Context, _ []store.Write) (int64, error) { return f.answer(ctx) }

func (f *faultyStore) Get(ctx context.Context, _ model.Kind, _ string) (model.Object, error) {
	if _, err := f.answer(ctx); err != nil {
		return nil, err
	}
	return nil, store.ErrNotFound
}

func (f *faultyStore) Linearizable(ctx context.Context) (int64, error) { return f.answer(ctx) }

func (f *faultyStore) Ping(ctx context.Context) error {
	_, err := f.answer(ctx)
	return err
}

// onFaulty makes a lab's server use a store that fails, and a state that is
// complete and empty.
func onFaulty(f *faultyStore) func(*Config) {
	return func(c *Config) {
		c.Store, c.DB = f, emptyState()
	}
}

func emptyState() *state.DB {
	db := state.New()
	if err := db.Replace(1, nil); err != nil {
		panic(err)
	}
	return db
}

// newBareServer makes a server whose handler is called directly.
func newBareServer(t testing.TB, st Store) *Server {
	t.Helper()
	s, err := New(Config{Listen: "127.0.0.1:0", MetricsListen: "-", Store: st, DB: emptyState(), Inspector: quiet{},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
