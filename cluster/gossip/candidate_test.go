package gossip

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestCandidate(t *testing.T) {
	m := func(name string, s State, cluster string) Member {
		return Member{Name: name, State: s, Meta: Meta{ClusterID: cluster}}
	}
	a, b, c := m("a", Alive, "x"), m("b", Alive, "x"), m("c", Alive, "x")
	tests := map[string]struct {
		members []Member
		size    int
		leader  string
		want    string
	}{
		"lowest":                       {[]Member{a, b, c}, 3, "", "a"},
		"in any order":                 {[]Member{c, b, a}, 3, "", "a"},
		"the leader stays":             {[]Member{a, b, c}, 3, "c", "c"},
		"the leader stays, last":       {[]Member{c, a, b}, 3, "c", "c"},
		"the leader is gone":           {[]Member{b, c}, 3, "a", "b"},
		"the leader has failed":        {[]Member{m("a", Failed, "x"), b, c}, 3, "a", "b"},
		"the leader has left":          {[]Member{m("a", Left, "x"), b, c}, 3, "a", "b"},
		"a minority":                   {[]Member{a}, 3, "a", ""},
		"a half is a minority":         {[]Member{a, b}, 4, "", ""},
		"alone":                        {[]Member{a}, 1, "", "a"},
		"members of no cluster":        {[]Member{m("0", Alive, ""), b, c}, 3, "", "b"},
		"don't count":                  {[]Member{m("0", Alive, ""), b}, 3, "", ""},
		"another cluster doesn't":      {[]Member{m("0", Alive, "y"), b}, 3, "", ""},
		"a leader of no cluster":       {[]Member{m("0", Alive, ""), b, c}, 3, "0", "b"},
		"nobody":                       {nil, 3, "a", ""},
		"a stranger's name is no name": {[]Member{a, b}, 3, "zz", "a"},
	}
	for name, tt := range tests {
		if got := Candidate(tt.members, "x", tt.size, tt.leader); got != tt.want {
			t.Errorf("%s: %q instead of %q", name, got, tt.want)
		}
	}
	if got := Candidate([]Member{m("a", Alive, "")}, "", 1, ""); got != "" {
		t.Errorf("%q leads without a cluster", got)
	}
}

func TestStand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all []*server
		for i := 1; i <= 3; i++ {
			all = append(all, w.start(i, join(1, 2, 3), cluster("x")))
		}
		for _, s := range all {
			s.sees("n1 n2 n3")
			s.hasSessions(2)
		}
		leader := func() (string, <-chan struct{}) { return "n1", nil }
		size := func() int { return 3 }
		stands := make(chan string, 3)
		ctx, cancel := context.WithCancel(context.Background())
		for _, s := range all {
			go func() {
				if err := s.Stand(ctx, leader, size); err == nil {
					stands <- s.Name()
				}
			}()
		}
		if got := <-stands; got != "n1" { // for another term of its own
			t.Errorf("%s stands first", got)
		}
		time.Sleep(time.Minute) // virtual
		all[0].kill()
		if got := <-stands; got != "n2" {
			t.Errorf("%s stands after n1", got)
		}
		all[1].kill() // n3 is alone
		select {
		case s := <-stands:
			t.Errorf("%s stands in a minority", s)
		case <-time.After(time.Minute):
		}
		cancel()

		done := make(chan error, 1)
		go func() { done <- all[2].Stand(context.Background(), leader, size) }()
		time.Sleep(time.Second) // virtual
		all[2].close()
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("closed while standing: %v", err)
		}
	})
}

// TestRecordedLeaderChanges: another recorded leader wakes who waits.
func TestRecordedLeaderChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1 := w.start(1, cluster("x"))
		n2 := w.start(2, cluster("x"), join(1))
		n1.sees("n1 n2")
		var mu sync.Mutex
		name, changed := "n2", make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- n1.Stand(t.Context(), func() (string, <-chan struct{}) {
				mu.Lock()
				defer mu.Unlock()
				return name, changed
			}, func() int { return 2 })
		}()
		select {
		case err := <-done:
			t.Fatalf("n1 stands beside the recorded leader: %v", err)
		case <-time.After(time.Minute):
		}
		n2.keeps("n1 n2", time.Second)
		mu.Lock()
		close(changed)
		name, changed = "gone", make(chan struct{})
		mu.Unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
