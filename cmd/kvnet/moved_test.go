package main

import (
	"maps"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"kvnet/cluster/gossip"
)

// stoppedAndMoved founds a cluster of three with something stored, ends all servers and
// gives them other addresses.
func stoppedAndMoved(t *testing.T) (servers []*process, args []string) {
	t.Helper()
	servers, _ = three(t)
	agreed(t, servers, 3, "")
	servers[0].write("before")
	for _, p := range servers {
		p.sees("before")
	}
	for _, p := range servers {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("%s ended with %v", p.name, err)
		}
	}
	return servers, moveAll(t, servers)
}

// moveAll gives servers other addresses and returns the arguments for these.
func moveAll(t *testing.T, servers []*process) []string {
	t.Helper()
	args := []string{"--gossip-key-file", keyFile(t, 7), "--bootstrap-expect", "3"}
	for _, p := range servers {
		for _, a := range []*string{&p.gossipListen, &p.storeListen} {
			*a = elsewhere(t, freePort(t))
		}
		args = append(args, "--join", p.gossipListen)
	}
	return args
}

// whole checks that servers work together and ends them, so that their logs can be
// read.
func whole(t *testing.T, servers []*process) {
	t.Helper()
	for _, p := range servers {
		p.ready()
	}
	agreed(t, servers, 3, "")
	for _, p := range servers {
		p.sees("before")
	}
	for _, p := range servers {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("%s ended with %v", p.name, err)
		}
	}
}

func TestServersThatHaveMovedComeBackTogether(t *testing.T) {
	servers, args := stoppedAndMoved(t)
	for _, p := range servers {
		p.run(args...)
	}
	whole(t, servers)
	// A second time: the engine's log says by now that they have moved to where they
	// are no longer.
	args = moveAll(t, servers)
	for _, p := range servers {
		p.run(args...)
	}
	whole(t, servers)
	moved := 0
	for _, p := range servers {
		moved += strings.Count(p.log.String(), `msg="another member has moved"`)
	}
	if moved == 0 {
		t.Error("no log says who has moved")
	}
}

func TestServersThatHaveMovedComeBackOneAfterTheOther(t *testing.T) {
	servers, args := stoppedAndMoved(t)
	servers[0].run(args...)
	waits(t, servers[0])
	readsOnly(t, servers[0])
	for i, p := range servers[1:] {
		p.run(args...)
		for _, q := range servers[:i+2] {
			q.ready()
		}
	}
	whole(t, servers)
}

// waits waits until a server says that it waits for the others.
func waits(t *testing.T, p *process) {
	t.Helper()
	eventually(t, p.name+" says that it waits", func() bool {
		code, _, body := p.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "waits for other members of its cluster: it knows where 0 of 2 are")
	})
}

// readsOnly waits until a server shows what it has, without a majority.
func readsOnly(t *testing.T, p *process) {
	t.Helper()
	eventually(t, p.name+" shows what it has", func() bool {
		code, _, body := p.get("/onos/kubevirtnetworking/network")
		return code == http.StatusOK && strings.Contains(body, "before")
	})
	if code, _, body := p.get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("%s is ready by itself: %d %s", p.name, code, body)
	}
}

// Two servers that could not meet have opened their stores with the addresses of
// before. Another server, which is no member of the store, makes them meet.
func TestServersThatHaveMovedMeetLate(t *testing.T) {
	servers, args := stoppedAndMoved(t)
	key := args[:2]
	for _, p := range servers[:2] {
		p.run(key...)
	}
	for _, p := range servers[:2] {
		readsOnly(t, p)
	}
	between := newProcess(t, "between")
	between.gossipListen, between.storeListen = elsewhere(t, between.gossipListen), elsewhere(t, between.storeListen)
	between.run(append([]string{"--join", servers[0].gossipListen, "--join", servers[1].gossipListen}, key...)...)
	for _, p := range servers[:2] {
		p.ready()
		p.sees("before")
	}
	for _, p := range servers[:2] {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("%s ended with %v", p.name, err)
		}
		if log := p.log.String(); !strings.Contains(log, "the other members can't be reached") || !strings.Contains(log, "c at https://127.0.0.1:") {
			t.Errorf("the log of %s does not say where it looked for the others", p.name)
		}
	}
}

// elsewhere is an address on the host to which servers move here.
func elsewhere(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.2", port)
}

func TestOnlyLivingMembersOfTheClusterSayWhereTheyAre(t *testing.T) {
	const cluster = "x"
	noted := map[string]string{"a": "192.0.2.1:2380", "b": "192.0.2.2:2380", "c": "192.0.2.3:2380"}
	self := gossip.Member{Name: "a", State: gossip.Alive, Meta: gossip.Meta{ClusterID: cluster, PeerURL: "https://192.0.2.9:2380"}}
	for what, test := range map[string]struct {
		change func(m *gossip.Member)
		found  bool
	}{
		"moved":             {func(*gossip.Member) {}, true},
		"a name":            {func(m *gossip.Member) { m.Meta.PeerURL = "https://b.example.net:2380" }, true},
		"failed":            {func(m *gossip.Member) { m.State = gossip.Failed }, false},
		"left":              {func(m *gossip.Member) { m.State = gossip.Left }, false},
		"another cluster's": {func(m *gossip.Member) { m.Meta.ClusterID = "y" }, false},
		"of no cluster":     {func(m *gossip.Member) { m.Meta.ClusterID = "" }, false},
		"not a member":      {func(m *gossip.Member) { m.Name = "d" }, false},
		"this server":       {func(m *gossip.Member) { m.Name = "a" }, false},
		"all addresses":     {func(m *gossip.Member) { m.Meta.PeerURL = "https://0.0.0.0:2380" }, false},
		"no port":           {func(m *gossip.Member) { m.Meta.PeerURL = "https://192.0.2.8" }, false},
		"no address":        {func(m *gossip.Member) { m.Meta.PeerURL = "" }, false},
		"this one's":        {func(m *gossip.Member) { m.Meta.PeerURL = self.Meta.PeerURL }, false},
	} {
		m := gossip.Member{Name: "b", State: gossip.Alive, Meta: gossip.Meta{ClusterID: cluster, PeerURL: "https://192.0.2.8:2380"}}
		test.change(&m)
		want := map[string]string{}
		if test.found {
			want["b"] = strings.TrimPrefix(m.Meta.PeerURL, "https://")
		}
		if got := storeAddresses([]gossip.Member{self, m}, "a", cluster, noted); !maps.Equal(got, want) {
			t.Errorf("%s: %v, not %v", what, got, want)
		}
	}
}
