package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kvnet/cluster/leader"
	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// deaf is a store that writes decisions one by one, like a long list that takes
// several transactions, and whose watch and answers come late or never.
type deaf struct {
	*ledger
	mu      sync.Mutex
	written []store.Decision
	known   map[string]bool
	calls   int
	listen  bool
}

func (d *deaf) Decide(ctx context.Context, t store.Term, ds []store.Decision) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.listen {
		return d.ledger.Decide(ctx, t, ds)
	}
	for _, x := range ds {
		if d.known[x.New.Key()] {
			return 0, store.ErrConflict
		}
		d.known[x.New.Key()] = true
		d.written = append(d.written, x)
		if d.calls == 1 && len(d.written) == 4 {
			break
		}
	}
	return 0, errors.New("no answer")
}

func TestNumberOfAWriteOfUnknownOutcomeIsGivenToNobodyElse(t *testing.T) {
	d := &deaf{known: map[string]bool{}}
	l, _, _ := decider(t, func(c *leader.DeciderConfig) { d.ledger = c.Store.(*ledger); c.Store = d })
	const n = 12
	var all []state.Event
	for i := range n {
		m := model.Meta{Created: 2, Modified: 2}
		all = append(all, state.Event{Kind: model.KindRouter, Key: fmt.Sprint("r", i), Object: &model.Router{Name: fmt.Sprint("r", i), Meta: m}})
	}
	if err := l.db.Apply(2, all); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a second attempt", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.calls >= 3 })
	d.mu.Lock()
	d.listen = true
	for _, x := range d.written {
		d.ledger.client(x.New)
	}
	d.mu.Unlock()
	eventually(t, l.db, "all zones decided", func(s state.Snapshot) bool { return s.Len(model.KindRouterStatus) == n })
	owner := map[uint16]string{}
	for st := range l.db.Snapshot().RouterStatuses() {
		if st.Zone == 0 || owner[st.Zone] != "" {
			t.Errorf("zone %d of router %s is also that of %q", st.Zone, st.Name, owner[st.Zone])
		}
		owner[st.Zone] = st.Name
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
