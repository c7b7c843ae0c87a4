package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"kvnet/model"
)

// heard notes what an Observer is told.
type heard struct {
	mu  sync.Mutex
	ops map[Op][]error
}

func (h *heard) Operation(op Op, took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if took < 0 || !slices.Contains(Ops, op) {
		err = errors.New("not an operation")
	}
	h.ops[op] = append(h.ops[op], err)
}

func TestEveryOperationIsObserved(t *testing.T) {
	h := &heard{ops: map[Op][]error{}}
	c := config(t)
	c.Observer = h
	f := open(t, c)
	same := func(o model.Object) (model.Object, error) { return o, nil }
	s := f.at(f.Create(ctx(t), network("n")))
	_, _ = f.Create(ctx(t), network("n"))
	_, _ = f.Update(ctx(t), model.KindNetwork, "n", same)
	_, _ = f.Put(ctx(t), []Write{{Old: s.Network("n"), New: s.Network("n")}})
	term := takeTerm(f, "a", "1")
	_, _ = f.RaiseEpoch(ctx(t), 1)
	_, _ = f.Decide(ctx(t), term, []Decision{{New: routerStatus("r", "")}})
	_, _ = f.Get(ctx(t), model.KindNetwork, "n")
	_, _ = f.CurrentTerm(ctx(t))
	_, _ = f.Created(ctx(t))
	_, _ = f.ClusterID(ctx(t))
	_ = f.Ping(context.Background())
	_, _ = f.Delete(ctx(t), model.KindNetwork, "n")
	want := map[Op]int{OpCreate: 2, OpUpdate: 1, OpPut: 1, OpTerm: 2, OpDecide: 1, OpRead: 5, OpDelete: 1}
	for _, op := range Ops {
		if len(h.ops[op]) != want[op] {
			t.Errorf("%s was heard %d times, want %d", op, len(h.ops[op]), want[op])
		}
		for i, err := range h.ops[op] {
			if (err != nil) != (op == OpCreate && i == 1) {
				t.Errorf("%s: %v", op, err)
			}
		}
	}
}

func TestStatsSayHowFullTheStoreIs(t *testing.T) {
	f := open(t, config(t))
	rev, err := f.Create(ctx(t), network("n"))
	f.at(rev, err)
	st := f.Stats()
	if st.Revision < rev || st.Used <= 0 || st.Size < st.Used || st.Quota != 2<<30 || st.Free <= 0 || st.Unreadable != 0 {
		t.Fatalf("%+v", st)
	}
	e := open(t, Config{Endpoints: []string{external(t, nil)}, Logger: testLog(t)})
	if st := e.Stats(); st.Revision == 0 || st.Quota != 0 {
		t.Fatalf("external: %+v", st)
	}
}
