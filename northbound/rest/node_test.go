package rest

import (
	"encoding/json"
	"strings"
	"testing"

	"kvnet/model"
)

func nodeBody(nodes ...string) string { return `{"nodes":[` + strings.Join(nodes, ",") + `]}` }

const (
	worker1 = `{"hostname":"w1","type":"WORKER","managementIp":"10.0.0.1","dataIp":"10.1.0.1","integrationBridge":"of:00000000000000a1","tunnelBridge":"of:00000000000000b1"}`
	worker2 = `{"hostname":"w2","type":"WORKER","managementIp":"10.0.0.2","dataIp":"10.1.0.2","integrationBridge":"of:00000000000000a2","tunnelBridge":"of:00000000000000b2"}`
)

func (l *lab) node(host string) *model.Node {
	l.t.Helper()
	n := l.db.Snapshot().Node(host)
	if n == nil {
		l.t.Fatalf("there is no node %q", host)
	}
	return n
}

func TestNodesAreStoredAllOrNone(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(worker1))
	for what, body := range map[string]string{
		"a bad element":               nodeBody(worker2, `{"hostname":"w3"}`),
		"a bridge of a stored node":   nodeBody(worker2, strings.ReplaceAll(worker1, "w1", "w3")),
		"a bridge twice in the list":  nodeBody(worker2, strings.ReplaceAll(worker2, "w2", "w3")),
		"a bridge in another writing": nodeBody(worker2, strings.ReplaceAll(strings.ReplaceAll(worker2, "w2", "w3"), "of:00000000000000a2", "of:A2")),
	} {
		r := l.must(400, "POST", nodesPath, body)
		if n := l.db.Snapshot().Len(model.KindNode); n != 1 {
			t.Errorf("%s: %d nodes are stored (%s)", what, n, r.body)
		}
	}
	// An absent node: nothing of the request is stored.
	l.must(304, "PUT", nodesPath, nodeBody(strings.ReplaceAll(worker1, "10.1.0.1", "10.1.0.9"), worker2))
	if got := l.node("w1").DataIP.String(); got != "10.1.0.1" {
		t.Errorf("w1 has the data address %s after a refused PUT", got)
	}
}

func TestPostOfPresentNodeChangesNothingAndWarns(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(worker1))
	before := *l.node("w1")
	r := l.must(201, "POST", nodesPath, nodeBody(strings.ReplaceAll(worker1, "10.1.0.1", "10.1.0.9"), worker2))
	if after := *l.node("w1"); after.Modified != before.Modified {
		t.Errorf("w1 was changed")
	}
	if w := r.header.Get("Warning"); !strings.HasPrefix(w, `199 kvnet "`) || !strings.Contains(w, "w1") {
		t.Errorf("Warning %q", w)
	}
	l.node("w2")
}

func TestPutOfNode(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(worker1))
	first := l.node("w1")

	l.must(200, "PUT", nodesPath, nodeBody(worker1))
	if n := l.node("w1"); n.Modified != first.Modified {
		t.Error("an equal PUT wrote something")
	}

	l.must(200, "PUT", nodesPath, nodeBody(`{"hostname":"w1","type":"WORKER","managementIp":"10.0.0.1","dataIp":"10.1.0.7",
		"phyIntfs":[{"network":"p","intf":"eth1"},{"network":"q","intf":"eth2","physBridgeId":"of:00000000000000c1"}]}`))
	n := l.node("w1")
	if n.InitRequest != 1 || n.IntegrationBridge != "of:00000000000000a1" || n.TunnelBridge != "of:00000000000000b1" {
		t.Errorf("after a PUT without bridges: %+v", n)
	}
	if want := model.BridgeDeviceID("peth1w1"); len(n.PhysIntfs) != 2 || n.PhysIntfs[0].PhysBridge != want {
		t.Errorf("interfaces %+v, want a first bridge %s", n.PhysIntfs, want)
	}
	if n.Created != first.Created {
		t.Error("a PUT began another life")
	}

	l.must(200, "PUT", nodesPath, nodeBody(`{"hostname":"w1","type":"WORKER","managementIp":"10.0.0.1","dataIp":"10.1.0.7",
		"phyIntfs":[{"network":"q","intf":"eth2","physBridgeId":"of:00000000000000c1"},{"network":"p","intf":"eth1"}]}`))
	if l.node("w1").InitRequest != 1 {
		t.Error("another order of the interfaces counted as a change")
	}
}

// TestNodesMaySwapBridges: the law of one owner for a bridge holds for the result.
func TestNodesMaySwapBridges(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(worker1, worker2))
	swap := strings.NewReplacer("a1", "a2", "a2", "a1")
	r := l.call("PUT", nodesPath, nodeBody(swap.Replace(worker1), swap.Replace(worker2)))
	if r.status != 200 {
		t.Fatalf("swap: %d %s", r.status, r.body)
	}
	if n := l.node("w1"); n.IntegrationBridge != "of:00000000000000a2" {
		t.Errorf("w1 has %s", n.IntegrationBridge)
	}
}

func TestOneBridgeForBothPurposes(t *testing.T) {
	l := newLab(t)
	r := l.call("POST", nodesPath, nodeBody(`{"hostname":"w1","type":"OTHER","managementIp":"10.0.0.1","integrationBridge":"of:01","tunnelBridge":"of:01"}`))
	if r.status >= 500 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestNodeReads(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(`{"hostname":"w/1 ä","type":"WORKER","managementIp":"10.0.0.1"}`))
	r := l.must(200, "GET", nodesPath+"/w%2F1%20%C3%A4", "")
	var n struct{ Hostname, State, IntegrationBridge string }
	if err := json.Unmarshal(r.body, &n); err != nil {
		t.Fatal(err)
	}
	if n.Hostname != "w/1 ä" || n.State != "INIT" || n.IntegrationBridge != string(model.BridgeDeviceID("br-int-w/1 ä")) {
		t.Errorf("got %s", r.body)
	}
	l.must(404, "GET", nodesPath+"/w2", "")
	if r := l.must(200, "GET", nodesPath, ""); !strings.Contains(string(r.body), `{"nodes":[{"hostname":"w/1 ä",`) {
		t.Errorf("list %s", r.body)
	}
	l.setNodeState("w/1 ä", model.NodeComplete)
	if r := l.must(200, "GET", nodesPath+"/state/w%2F1%20%C3%A4", ""); string(r.body) != `{"State":"COMPLETE"}` {
		t.Errorf("state %s", r.body)
	}
	l.must(405, "DELETE", nodesPath+"/healthz", "")
}

func TestInitRequestsAreCounted(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(worker1, worker2))
	l.setNodeState("w1", model.NodeComplete)
	counts := func() [2]uint64 { return [2]uint64{l.node("w1").InitRequest, l.node("w2").InitRequest} }
	for _, step := range []struct {
		method, path string
		want         [2]uint64
	}{
		{"GET", "/init/w1", [2]uint64{1, 0}},
		{"GET", "/init/all", [2]uint64{2, 1}},
		{"GET", "/init/incomplete", [2]uint64{2, 2}},
		{"POST", "/init/w1", [2]uint64{3, 2}},
		{"POST", "/init/all", [2]uint64{4, 3}},
		{"POST", "/init/incomplete", [2]uint64{4, 4}},
	} {
		if r := l.must(200, step.method, nodesPath+step.path, ""); string(r.body) != "{}" {
			t.Errorf("%s %s: %s", step.method, step.path, r.body)
		}
		if got := counts(); got != step.want {
			t.Errorf("%s %s: requests %v, want %v", step.method, step.path, got, step.want)
		}
	}
	l.must(404, "GET", nodesPath+"/init/w9", "")
	l.must(404, "POST", nodesPath+"/init/w9", "")
	viewer := map[string]string{"Authorization": viewerAuth}
	if r := l.send("POST", nodesPath+"/init/all", viewer, nil); r.status != 403 {
		t.Errorf("POST by a viewer: %d", r.status)
	}
	if r := l.send("GET", nodesPath+"/init/all", viewer, nil); r.status != 200 {
		t.Errorf("GET by a viewer: %d, in ONOS it is 200", r.status)
	}
}

// TestSyncRulesWaitsAndTellsFailures: nodes that become COMPLETE anew are waited
// for, those that don't are named.
func TestSyncRulesWaitsAndTellsFailures(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Sync = 300e6 })
	l.must(201, "POST", nodesPath, nodeBody(worker1, worker2))
	l.setNodeState("w1", model.NodeComplete)
	l.setNodeState("w2", model.NodeComplete)
	if r := l.must(200, "POST", nodesPath+"/sync/rules", ""); string(r.body) != `{"failed":["w1","w2"]}` {
		t.Errorf("nobody completes: %s", r.body)
	}
	l.server.limits.Sync = 20e9
	done := make(chan *reply, 1)
	go func() { done <- l.call("GET", nodesPath+"/sync/rules", "") }()
	eventually(t, "both nodes are asked for again", func() bool {
		return l.node("w1").InitRequest == 2 && l.node("w2").InitRequest == 2
	})
	l.setNodeState("w1", model.NodeComplete)
	l.setNodeState("w2", model.NodeComplete)
	if r := <-done; r.status != 200 || string(r.body) != "{}" {
		t.Errorf("all complete: %d %s", r.status, r.body)
	}
}

// TestBridgesThatNameNoSwitchAreStoredWithAWarning: as in ONOS any URI will do, but
// no switch will ever have it.
func TestBridgesThatNameNoSwitchAreStoredWithAWarning(t *testing.T) {
	l := newLab(t)
	warnings := func(r *reply) string { return strings.Join(r.header.Values("Warning"), "\n") }
	odd := strings.ReplaceAll(worker1, "of:00000000000000a1", "br-int")
	r := l.must(201, "POST", nodesPath, nodeBody(odd, worker2))
	if w := warnings(r); strings.Count(w, "199 kvnet") != 1 || !strings.Contains(w, "integrationBridge") || !strings.Contains(w, "w1") || !strings.Contains(w, "br-int") {
		t.Errorf("POST of a node: %q", w)
	}
	if got := l.node("w1").IntegrationBridge; got != "br-int" {
		t.Errorf("%q is stored", got)
	}
	if w := warnings(l.must(200, "PUT", nodesPath, nodeBody(strings.ReplaceAll(worker1, "of:00000000000000b1", "of:00000000000000bx")))); !strings.Contains(w, "tunnelBridge") {
		t.Errorf("PUT of a node: %q", w)
	}
	if w := warnings(l.must(200, "PUT", nodesPath, nodeBody(worker2))); w != "" {
		t.Errorf("PUT of a node with two datapath ids: %q", w)
	}
	port := `{"vmName":"v","networkId":"n","macAddress":"fe:00:00:00:00:01","deviceId":"D"}`
	l.must(201, "POST", networksPath, networkBody("n"))
	if w := warnings(l.must(201, "POST", networkingPath+"/port", strings.Replace(port, `"D"`, `"of:1234567890123456789"`, 1))); !strings.Contains(w, "deviceId") {
		t.Errorf("POST of a port: %q", w)
	}
	if w := warnings(l.must(200, "PUT", networkingPath+"/port/fe:00:00:00:00:01", strings.Replace(port, `"D"`, `"of:00000000000000a2"`, 1))); w != "" {
		t.Errorf("PUT of a port with a datapath id: %q", w)
	}
}
