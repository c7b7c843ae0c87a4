package leader

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kvnet/cluster/store"
)

// inTime runs a Leadership in a time of its own until the test function ends.
func inTime(t *testing.T, c LeadershipConfig) (*Leadership, func()) {
	t.Helper()
	c.Name, c.Logger = "a", slog.New(slog.DiscardHandler)
	l, err := NewLeadership(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	return l, func() { cancel(); <-done }
}

func TestAfterALongOutageTheLeadIsTakenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerms()
		s.fail(store.ErrUnavailable)
		l, end := inTime(t, LeadershipConfig{Store: s})
		defer end()
		time.Sleep(10 * time.Minute)
		s.fail(nil)
		time.Sleep(maxOutage)
		synctest.Wait()
		if _, ok := l.Term(); !ok {
			t.Errorf("nobody leads %s after the outage", maxOutage)
		}
	})
}

func TestTheLeaseFollowsTheSizeOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerms()
		var patience atomic.Int64
		patience.Store(int64(time.Minute))
		l, end := inTime(t, LeadershipConfig{Store: s, Timing: func() (time.Duration, time.Duration) {
			p := time.Duration(patience.Load())
			return p / 10, p
		}})
		defer end()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		patience.Store(int64(time.Second)) // the cluster has grown
		time.Sleep(time.Minute)
		synctest.Wait()
		s.fail(store.ErrUnavailable)
		// The last answer is at most a tenth of the lease old.
		time.Sleep(800 * time.Millisecond)
		if _, ok := l.Term(); !ok {
			t.Error("the lease has ended too early")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if _, ok := l.Term(); ok {
			t.Error("leads after the shorter lease")
		}
	})
}
