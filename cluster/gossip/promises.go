package gossip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

func (f *former) call(ctx context.Context, name, kind string, b []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, formCallTime)
	defer cancel()
	return f.g.Call(ctx, name, kind, b)
}

// askAll asks all of names at a time.
func (f *former) askAll(ctx context.Context, names []string) ([]answer, error) {
	out := make([]answer, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			b, err := f.call(ctx, name, askKind, nil)
			if err == nil {
				err = json.Unmarshal(b, &out[i])
			}
			switch p := out[i].Plan; {
			case err != nil:
			case out[i].Self.Name != name:
				err = fmt.Errorf("member %q calls itself %q", name, out[i].Self.Name)
			case p != nil:
				err = p.check()
			case out[i].Committed:
				err = fmt.Errorf("member %q has committed no plan", name)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, waiting(err.Error())
	}
	return out, nil
}

// ask answers what this server brings and has promised.
func (f *former) ask(context.Context, Member, []byte) ([]byte, error) {
	rec := f.record()
	sees, _ := assembled(f.c.Expect, f.g.Members())
	return json.Marshal(answer{Self: f.c.Self, Expect: f.c.Expect, Plan: rec.Plan, Committed: rec.Committed, Sees: sees})
}

// promise keeps a plan on disk, unless another one is there.
func (f *former) promise(_ context.Context, from Member, b []byte) ([]byte, error) {
	var p Plan
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil, errors.New("this server is in a cluster")
	}
	if err := promise(f.c.Self, f.c.Expect, f.rec, from.Name, &p); err != nil {
		return nil, err
	}
	if f.rec.Plan != nil {
		return nil, nil
	}
	rec := f.rec
	rec.Plan = &p
	return nil, f.saveLocked(rec)
}

// withdraw drops a plan that its founder has given up.
func (f *former) withdraw(_ context.Context, from Member, id []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.rec.Plan
	switch {
	case p == nil || p.ClusterID != string(id):
		return nil, nil
	case f.rec.Committed:
		return nil, errors.New("the plan is committed")
	case p.founder() != from.Name:
		return nil, fmt.Errorf("the plan is that of server %q", p.founder())
	}
	rec := f.rec
	rec.Plan = nil
	return nil, f.saveLocked(rec)
}

func (f *former) record() Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec
}

// replace saves rec if the plan is still old. over ends promises.
func (f *former) replace(old *Plan, rec Record, over bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec.Plan != old {
		return waiting("another plan has been promised meanwhile")
	}
	if err := f.saveLocked(rec); err != nil {
		return err
	}
	f.over = over
	return nil
}

func (f *former) saveLocked(rec Record) error {
	if err := f.c.Records.Save(rec); err != nil {
		return err
	}
	f.rec = rec
	return nil
}
