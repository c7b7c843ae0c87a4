package store

import (
	"testing"
	"time"
)

func TestAMemberStandsForTheStoresLeaderAtOnce(t *testing.T) {
	cs := planned(t, "a", "b", "c")
	for n, c := range cs {
		// Either of those that stay could win an election, but later.
		c.Election, c.Heartbeat = 2*time.Second, 100*time.Millisecond
		cs[n] = c
	}
	fs := openAll(t, cs)
	led := leader(t, fs)
	for n, f := range fs {
		until(t, "all know the leader", func() bool { h, _ := f.Health(); return h.Leader == led })
		if n == led {
			continue
		}
		if err := f.Succeed(ctx(t), n, 0); err != nil { // the wrong one is dead
			t.Fatal(err)
		}
		if h, _ := f.Health(); h.Leader != led {
			t.Fatalf("%s: %+v", n, h)
		}
	}
	dead := fs[led].engine.etcd.Server
	for _, m := range dead.Cluster().Members() {
		if m.ID != dead.MemberID() {
			dead.CutPeer(m.ID)
			defer dead.MendPeer(m.ID)
		}
	}
	for n, f := range fs {
		if n == led {
			continue
		}
		if err := f.Succeed(ctx(t), led, 0); err != nil {
			t.Fatal(err)
		}
		until(t, n+" leads", func() bool { h, _ := f.Health(); return h.Leads })
		f.at(f.Create(ctx(t), network("n")))
		break
	}
}
