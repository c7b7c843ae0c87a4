package rest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"kvnet/model"
	"kvnet/model/state"
)

const routersPath = networkingPath + "/router"

// router is the stored form of a router.
func (l *lab) router(name string) *model.Router {
	l.t.Helper()
	r := l.db.Snapshot().Router(name)
	if r == nil {
		l.t.Fatalf("there is no router %q", name)
	}
	return r
}

// TestWrittenGatewayAndPeerAreCounted: the leader can tell a new wish from one
// that it has considered, and what a PUT leaves out stays.
func TestWrittenGatewayAndPeerAreCounted(t *testing.T) {
	l := newLab(t)
	mac1, mac2 := mac(ptr("00:00:5e:00:53:01")), mac(ptr("00:00:5e:00:53:02"))
	type want struct {
		gateway      string
		gatewayWrite uint64
		peer         bool
		mac          model.MAC
		write        uint64
	}
	for i, step := range []struct {
		what, rest string
		want       want
	}{
		{"created with both", `,"gateway":"gw1","peerRouter":{"ip":"10.0.0.1","mac":"00:00:5e:00:53:01"}`, want{"gw1", 1, true, mac1, 1}},
		{"same address without MAC keeps the MAC", `,"peerRouter":{"ip":"10.0.0.1"}`, want{"gw1", 1, true, mac1, 1}},
		{"a written MAC counts, equal or not", `,"peerRouter":{"ip":"10.0.0.1","mac":"00:00:5e:00:53:01"}`, want{"gw1", 1, true, mac1, 2}},
		{"another MAC", `,"peerRouter":{"ip":"10.0.0.1","mac":"00:00:5e:00:53:02"}`, want{"gw1", 1, true, mac2, 3}},
		{"another address drops the MAC", `,"peerRouter":{"ip":"10.0.0.2"}`, want{"gw1", 1, true, model.MAC{}, 4}},
		{"null is absent", `,"peerRouter":{"ip":"10.0.0.2","mac":null},"gateway":null`, want{"gw1", 1, true, model.MAC{}, 4}},
		{"the same gateway again is a new wish", `,"gateway":"gw1","peerRouter":{"ip":"10.0.0.2"}`, want{"gw1", 2, true, model.MAC{}, 4}},
		{"another gateway", `,"gateway":"gw2","peerRouter":{"ip":"10.0.0.2"}`, want{"gw2", 3, true, model.MAC{}, 4}},
		{"without a peer there is none", ``, want{"gw2", 3, false, model.MAC{}, 0}},
		{"a peer without address is none", `,"peerRouter":{"mac":"00:00:5e:00:53:02"}`, want{"gw2", 3, false, model.MAC{}, 0}},
	} {
		body := `{"name":"r1","mac":"fe:00:00:00:00:01"` + step.rest + `}`
		if i == 0 {
			l.must(201, "POST", routersPath, body)
		} else {
			l.must(200, "PUT", routersPath+"/r1", body)
		}
		r := l.router("r1")
		got := want{gateway: r.Gateway, gatewayWrite: r.GatewayWrite}
		if r.Peer != nil {
			got.peer, got.mac, got.write = true, r.Peer.MAC, r.Peer.Write
		}
		if got != step.want {
			t.Errorf("%s: %+v, want %+v", step.what, got, step.want)
		}
	}
}

// TestShownGatewayAndPeer: clients see what is decided, and a wish that is not
// considered yet where it can be served.
func TestShownGatewayAndPeer(t *testing.T) {
	written, decided := mac(ptr("00:00:5e:00:53:01")), mac(ptr("00:00:5e:00:53:99"))
	ip := address(ptr("10.0.0.1"))
	gateway := func(host string, st model.NodeState, typ model.NodeType) []model.Object {
		return []model.Object{
			&model.Node{Meta: model.Meta{Created: 5}, Hostname: host, Type: typ},
			&model.NodeStatus{Hostname: host, Life: 5, State: st},
		}
	}
	nodes := append(gateway("up", model.NodeComplete, model.NodeGateway), gateway("down", model.NodeIncomplete, model.NodeGateway)...)
	nodes = append(nodes, gateway("worker", model.NodeComplete, model.NodeWorker)...)
	status := func(gw string, gatewayWrite, peerWrite, life uint64) *model.RouterStatus {
		return &model.RouterStatus{Name: "r", Life: int64(life), Gateway: gw, GatewayWrite: gatewayWrite, PeerIP: ip, PeerMAC: decided, PeerWrite: peerWrite}
	}
	for _, c := range []struct {
		what    string
		gateway string
		status  *model.RouterStatus
		shown   string
		mac     model.MAC
	}{
		{"nothing decided, the wish can serve", "up", nil, "up", written},
		{"nothing decided, the wish can't serve", "down", nil, "down", written},
		{"nothing decided, the wish doesn't exist", "ghost", nil, "ghost", written},
		{"nothing written, nothing decided", "", nil, "", written},
		{"decided", "down", status("up", 1, 1, 7), "up", decided},
		{"a new wish that can serve", "up", status("other", 0, 1, 7), "up", decided},
		{"a new wish that can't serve", "down", status("other", 0, 1, 7), "other", decided},
		{"a new wish that is no gateway", "worker", status("other", 0, 1, 7), "other", decided},
		{"a wish that was considered", "up", status("other", 1, 1, 7), "other", decided},
		{"none decided", "down", status("", 1, 1, 7), "down", decided},
		{"a new peer MAC", "down", status("up", 1, 0, 7), "up", written},
		{"the status of an earlier life", "down", status("other", 1, 1, 6), "down", written},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &model.Router{Meta: model.Meta{Created: 7}, Name: "r", MAC: written, Gateway: c.gateway, GatewayWrite: 1,
				Peer: &model.PeerRouter{IP: ip, MAC: written, Write: 1}}
			objects := append([]model.Object{r}, nodes...)
			if c.status != nil {
				objects = append(objects, c.status)
			}
			db := state.New()
			if err := db.Replace(9, objects); err != nil {
				t.Fatal(err)
			}
			out := encodeRouter(db.Snapshot(), r)
			if text(out.Gateway) != c.shown {
				t.Errorf("gateway %q, want %q", text(out.Gateway), c.shown)
			}
			if mac(out.Peer.MAC) != c.mac {
				t.Errorf("peer MAC %v, want %v", text(out.Peer.MAC), c.mac)
			}
		})
	}
}

// TestRouterOutputCanBePosted: what GET writes is what POST reads.
func TestRouterOutputCanBePosted(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", routersPath, `{"name":"r1","mac":"fe:00:00:00:00:01","enableSnat":true,"internal":["b","a","b"],`+
		`"external":{"ip":"203.0.113.5","network":"up"},"peerRouter":{"ip":"203.0.113.1"},"description":"a<b&c>"}`)
	out := l.must(200, "GET", routersPath+"/r1", "").body
	const want = `{"name":"r1","enableSnat":true,"mac":"FE:00:00:00:00:01","description":"a<b&c>","internal":["a","b"],` +
		`"external":[{"ip":"203.0.113.5","network":"up"}],"peerRouter":{"ip":"203.0.113.1"}}`
	if string(out) != want {
		t.Fatalf("GET gives %s, want %s", out, want)
	}
	l.must(200, "PUT", routersPath+"/r1", string(out))
	l.must(204, "DELETE", routersPath+"/r1", "")
	l.must(201, "POST", routersPath, string(out))
	if again := l.must(200, "GET", routersPath+"/r1", "").body; string(again) != want {
		t.Errorf("GET gives %s, want %s", again, want)
	}
}

// TestRouterInUse: a router that a floating IP uses stays.
func TestRouterInUse(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", routersPath, `{"name":"r/1","mac":"fe:00:00:00:00:01"}`)
	l.must(201, "POST", networkingPath+"/floating-ip", `{"id":"f","routerName":"r/1","networkName":"n","floatingIp":"10.0.0.1"}`)
	l.must(409, "DELETE", routersPath+"/r%2F1", "")
	l.must(204, "DELETE", networkingPath+"/floating-ip/f", "")
	l.must(204, "DELETE", routersPath+"/r%2F1", "")
	l.must(404, "DELETE", routersPath+"/r%2F1", "")
}

// TestConcurrentUpdatesLoseNothing: each PUT that names a gateway is counted.
func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", routersPath, `{"name":"r1","mac":"fe:00:00:00:00:01"}`)
	const writers, each = 8, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				if r := l.call("PUT", routersPath+"/r1", fmt.Sprintf(`{"name":"r1","mac":"fe:00:00:00:00:01","gateway":"gw%d"}`, w)); r.status != 200 {
					t.Errorf("PUT: %d %s", r.status, r.body)
				}
			}
		})
	}
	wg.Wait()
	if got := l.router("r1").GatewayWrite; got != writers*each {
		t.Errorf("%d writes were counted, want %d", got, writers*each)
	}
}

// TestParallelCreates: of equal ids exactly one is created, of distinct ids all.
func TestParallelCreates(t *testing.T) {
	l := newLab(t)
	const ids, each = 20, 10
	var mu sync.Mutex
	created := map[string]int{}
	var wg sync.WaitGroup
	for i := range ids {
		for range each {
			wg.Go(func() {
				id := fmt.Sprintf("n%d", i)
				switch r := l.call("POST", networksPath, networkBody(id)); r.status {
				case 201:
					mu.Lock()
					created[id]++
					mu.Unlock()
				case 400:
				default:
					t.Errorf("POST %s: %d %s", id, r.status, r.body)
				}
			})
		}
	}
	wg.Wait()
	var list struct{ Networks []json.RawMessage }
	if err := json.Unmarshal(l.must(200, "GET", networksPath, "").body, &list); err != nil {
		t.Fatal(err)
	}
	if len(created) != ids || len(list.Networks) != ids {
		t.Errorf("%d ids were created, %d are listed, want %d", len(created), len(list.Networks), ids)
	}
	for id, n := range created {
		if n != 1 {
			t.Errorf("%s was created %d times", id, n)
		}
	}
}

// networkBody is a network that is valid.
func networkBody(id string) string {
	b, err := json.Marshal(map[string]any{"networkId": id, "type": "FLAT", "name": id, "mtu": 1500, "gatewayIp": "10.0.0.1",
		"defaultRoute": true, "cidr": "10.0.0.0/24", "ipPool": map[string]string{"start": "10.0.0.2", "end": "10.0.0.9"}})
	if err != nil {
		panic(err)
	}
	return string(b)
}
