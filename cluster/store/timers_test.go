package store

import "testing"

// A server that others can join keeps its timers when they have joined, so they have
// to be those of a cluster from its start.
func TestTheTimersFitThoseWhoCanJoin(t *testing.T) {
	three := Identity{Cluster: Cluster{ID: "c", Members: map[string]string{"kvnet": "127.0.0.1:1", "b": "127.0.0.1:2", "c": "127.0.0.1:3"}}}
	for name, c := range map[string]struct {
		listen   string
		identity Identity
		members  int
		alone    bool
	}{
		"alone on loopback":          {listen: "127.0.0.1:2380", alone: true},
		"alone by name":              {listen: "localhost:2380", members: 1, alone: true},
		"alone on loopback, IPv6":    {listen: "[::1]:2380", alone: true},
		"alone for others to join":   {listen: "0.0.0.0:2380"},
		"alone on an address":        {listen: "192.0.2.1:2380", members: 1},
		"three on loopback":          {listen: "127.0.0.1:2380", members: 3},
		"about to found on loopback": {listen: "127.0.0.1:2380", identity: three},
	} {
		cfg, err := engineConfig(Config{Dir: t.TempDir(), Listen: c.listen, AllowPlaintextPeers: true}.withDefaults(), c.identity, c.members)
		if err != nil {
			t.Fatal(err)
		}
		heartbeat, election := defaultHeartbeat, defaultElection
		if c.alone {
			heartbeat, election = aloneHeartbeat, aloneElection
		}
		if int64(cfg.TickMs) != heartbeat.Milliseconds() || int64(cfg.ElectionMs) != election.Milliseconds() {
			t.Errorf("%s: timers of %d and %d ms", name, cfg.TickMs, cfg.ElectionMs)
		}
	}
}
