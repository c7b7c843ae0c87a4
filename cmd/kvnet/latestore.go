package main

import (
	"context"
	"fmt"
	"sync"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/northbound/rest"
)

// phase is what this server is doing until the store is open.
type phase struct {
	mu   sync.Mutex
	text string
}

func (p *phase) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

func (p *phase) get() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

// lateStore is the store for REST, which answers before the store is open.
type lateStore struct{ s *server }

func (l lateStore) now() (*store.Store, error) {
	if st := l.s.opened.Load(); st != nil {
		return st, nil
	}
	return nil, fmt.Errorf("%w: %w: %s", store.ErrUnavailable, rest.ErrNotOpen, l.s.notReady())
}

func (l lateStore) Create(ctx context.Context, obj model.Object) (int64, error) {
	st, err := l.now()
	if err != nil {
		return 0, err
	}
	return st.Create(ctx, obj)
}

func (l lateStore) Update(ctx context.Context, kind model.Kind, key string, f func(model.Object) (model.Object, error)) (int64, error) {
	st, err := l.now()
	if err != nil {
		return 0, err
	}
	return st.Update(ctx, kind, key, f)
}

func (l lateStore) Delete(ctx context.Context, kind model.Kind, key string) (int64, error) {
	st, err := l.now()
	if err != nil {
		return 0, err
	}
	return st.Delete(ctx, kind, key)
}

func (l lateStore) Put(ctx context.Context, changes []store.Write) (int64, error) {
	st, err := l.now()
	if err != nil {
		return 0, err
	}
	return st.Put(ctx, changes)
}

func (l lateStore) Get(ctx context.Context, kind model.Kind, key string) (model.Object, error) {
	st, err := l.now()
	if err != nil {
		return nil, err
	}
	return st.Get(ctx, kind, key)
}

func (l lateStore) Ping(ctx context.Context) error {
	st, err := l.now()
	if err != nil {
		return err
	}
	return st.Ping(ctx)
}

func (l lateStore) Linearizable(ctx context.Context) (int64, error) {
	st, err := l.now()
	if err != nil {
		return 0, err
	}
	return st.Linearizable(ctx)
}
