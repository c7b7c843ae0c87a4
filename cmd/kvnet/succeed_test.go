package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kvnet/cluster/gossip"
)

func TestTheOrderOfSuccessionOfTheStoresLeader(t *testing.T) {
	alive := func(names string) (out []gossip.Member) {
		for _, n := range strings.Fields(names) {
			m := gossip.Member{Name: strings.Trim(n, "x-"), State: gossip.Alive, Meta: gossip.Meta{ClusterID: "id"}}
			switch {
			case strings.HasSuffix(n, "x"):
				m.State = gossip.Failed
			case strings.HasSuffix(n, "-"):
				m.State = gossip.Left
			}
			out = append(out, m)
		}
		return out
	}
	for _, c := range []struct {
		members, own, dead string
		voters, turn       int
		ok                 bool
	}{
		{"a b cx", "b", "c", 3, 0, true},
		{"a b cx", "a", "c", 3, 1, true}, // it leads kvnet
		{"a b c", "b", "c", 3, 0, false},
		{"a b c-", "b", "c", 3, 0, false},
		{"a b", "b", "c", 3, 0, false},
		{"ax b cx", "b", "c", 3, 0, false},
		{"a b c dx e", "e", "d", 5, 0, true},
		{"a b c dx e", "b", "d", 5, 2, true},
		{"a b c dx e", "f", "d", 5, 0, false},
	} {
		turn, ok := successionTurn(alive(c.members), "id", c.own, c.dead, "a", c.voters)
		if ok != c.ok || ok && turn != c.turn {
			t.Errorf("%+v: turn %d, %v", c, turn, ok)
		}
	}
}

// post makes a network and returns the status and the answer.
func (p *process) post(ctx context.Context, id string) (int, string) {
	body := fmt.Sprintf(`{"networkId":%q,"name":%q,"type":"VXLAN","mtu":1450,"segmentId":"7","gatewayIp":"10.1.0.1","defaultRoute":true,"cidr":"10.1.0.0/24","ipPool":{"start":"10.1.0.10","end":"10.1.0.100"}}`, id, id)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.restListen+"/onos/kubevirtnetworking/network", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.SetBasicAuth("onos", "rocks")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// writers make networks through the servers until they are stopped.
type writers struct {
	mu   sync.Mutex
	ids  []string // acknowledged
	lost int      // how many writes failed
	last time.Time
	gap  time.Duration // the longest between two acknowledged writes
	work sync.WaitGroup
	stop context.CancelFunc
}

func write(t *testing.T, round int, servers []*process) *writers {
	ctx, stop := context.WithCancel(t.Context())
	w := &writers{last: time.Now(), stop: stop}
	for _, p := range servers {
		for c := range 3 {
			w.work.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprintf("w-%d-%s-%d-%d", round, p.name, c, i)
					began := time.Now()
					code, body := p.post(t.Context(), id)
					w.mu.Lock()
					if code != http.StatusCreated {
						t.Logf("write %s: %d %s after %s", id, code, body, time.Since(began))
						w.lost++
						w.mu.Unlock()
						continue
					}
					w.ids = append(w.ids, id)
					w.gap = max(w.gap, time.Since(w.last))
					w.last = time.Now()
					w.mu.Unlock()
				}
			})
		}
	}
	return w
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids)
}

func (p *process) leadsStore(t *testing.T) bool {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.metricsListen+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return err == nil && strings.Contains(string(b), "\nkvnet_store_leads 1\n")
}

// On a machine that starves the servers no patience is enough. So there have to be
// enough rounds in which no write failed, and not only such.
func TestNoWriteFailsWhenAFollowerWithTheStoresLeaderDies(t *testing.T) {
	const rounds, most = 5, 15
	servers, args := three(t)
	var gaps []time.Duration
	for round := 0; len(gaps) < rounds; round++ {
		if round == most {
			t.Fatalf("writes failed in %d of %d rounds", most-len(gaps), most)
		}
		leader := agreed(t, servers, 3, "")
		var victim *process
		eventually(t, "the store's leader is on a follower", func() bool {
			i := slices.IndexFunc(servers, func(p *process) bool { return p != leader && p.leadsStore(t) })
			if i >= 0 {
				victim = servers[i]
			}
			return i >= 0
		})
		w := write(t, round, without(servers, victim))
		eventually(t, "writes", func() bool { return w.count() > 50 })
		_ = victim.end(syscall.SIGKILL) // "signal: killed"
		n := w.count()
		eventually(t, "writes go on", func() bool { return w.count() > n+100 })
		w.stop()
		w.work.Wait()
		now := agreed(t, without(servers, victim), 3, "")
		if w.lost == 0 {
			gaps = append(gaps, w.gap.Round(time.Millisecond))
			if now != leader {
				t.Errorf("%s leads, %s did before a follower died", now.name, leader.name)
			}
		}
		for _, p := range without(servers, victim) {
			p.sees(w.ids...)
		}
		victim.run(args...)
		victim.ready()
		victim.sees(w.ids...)
	}
	t.Logf("longest gaps between two acknowledged writes: %s", gaps)
}
