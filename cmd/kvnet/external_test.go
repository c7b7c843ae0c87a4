package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed" //nolint:depguard // the test runs one that is no part of kvnet
)

// externalEtcd runs an etcd that is no part of kvnet, and returns its URL.
func externalEtcd(t *testing.T) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(t.TempDir(), "etcd")
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = free, free
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = free, free
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogLevel = "fatal"
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		t.Fatal("etcd is not ready")
	}
	return "http://" + e.Clients[0].Addr().String()
}

func TestServersShareAnExternalStore(t *testing.T) {
	t.Setenv("KVNET_PASSWORD", "rocks")
	servers := []*process{newProcess(t, "a"), newProcess(t, "b"), newProcess(t, "c")}
	args := []string{"--store-endpoints", externalEtcd(t), "--gossip-key-file", keyFile(t, 7), "--bootstrap-expect", "3"}
	for _, p := range servers {
		args = append(args, "--join", p.gossipListen)
	}
	for _, p := range servers {
		p.run(args...)
	}
	for _, p := range servers {
		p.ready()
	}
	leader := agreed(t, servers, 3, "")

	at := []string{"--url", "http://" + without(servers, leader)[0].restListen}
	out, err := kvnet(t, append([]string{"cluster", "members"}, at...)...)
	if err != nil || strings.Count(out, "alive") != 3 || strings.Count(out, "leader") != 1 || strings.Count(out, "follower") != 2 {
		t.Errorf("members: %v\n%s", err, out)
	}
	for _, command := range [][]string{{"cluster", "remove", leader.name}, {"cluster", "backup", filepath.Join(t.TempDir(), "backup")}} {
		if out, err := kvnet(t, append(command, at...)...); err == nil || !strings.Contains(err.Error(), "external etcd cluster") {
			t.Errorf("%s: %q, %v", command, out, err)
		}
	}
	// Nobody takes the lead from another in turn. (While they get to know each other
	// it may pass on once.)
	leader = agreed(t, servers, 3, "")
	_, term := leader.leader(3)
	_, last, _ := passOn(t, servers, args, leader)
	if _, now := last.leader(3); now != term+2 {
		t.Errorf("term %d after %d and two changes: the lead went from hand to hand", now, term)
	}
	// What only the leader can do works on the leader.
	if code, body := call(t, last.config, http.MethodPost, "/kvnet/v1/cluster/raise-epoch", ""); code != http.StatusOK {
		t.Errorf("raise the epoch: %d %s", code, body)
	}
}

// Servers on one external store that nobody told of each other must not take the lead
// from each other in turn: the one that was started last has it.
func TestServersThatDoNotKnowEachOtherDoNotFight(t *testing.T) {
	store := externalEtcd(t)
	a, b := newProcess(t, "a"), newProcess(t, "b")
	for _, p := range []*process{a, b} {
		p.run("--store-endpoints", store)
		p.ready()
		eventually(t, p.name+" leads", func() bool { name, _ := p.leader(1); return name == p.name })
	}
	eventually(t, "a has lost the lead", func() bool {
		m := a.members()
		return len(m) == 1 && !m[0].Leader && m[0].Term == 2
	})
	for i := range 30 {
		a.write(fmt.Sprint("a", i))
		b.write(fmt.Sprint("b", i))
	}
	if name, term := b.leader(1); name != "b" || term != 2 {
		t.Errorf("%q leads under term %d", name, term)
	}
	if err := a.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if !strings.Contains(a.log.String(), "a server that this one doesn't know leads") {
		t.Error("a doesn't say why it does not lead")
	}
}
