package rest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kvnet/cluster/leader"
	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// cloud is a server with a store of its own that leads: it decides gateways,
// states and MACs.
type cloud struct {
	*lab
	decider *leader.Decider
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	quietly := slog.New(slog.DiscardHandler)
	db := state.New()
	st, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MinFree: -1, Logger: quietly}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	term, err := st.TakeTerm(t.Context(), "a", "1")
	if err != nil {
		t.Fatal(err)
	}
	d := leader.NewDecider(leader.DeciderConfig{DB: db, Store: st, Term: term, Logger: quietly})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("decide: %v", err)
		}
	})
	return &cloud{newLab(t, func(c *Config) { c.Store, c.DB = st, db }), d}
}

func (c *cloud) connect(switches ...model.DPID) {
	for _, d := range switches {
		c.db.SwitchConnected(model.Switch{DPID: d}, nil)
	}
}

// gateway is the gateway that clients see.
func (c *cloud) gateway(router string) string {
	c.t.Helper()
	var r struct{ Gateway string }
	if err := json.Unmarshal(c.must(200, "GET", routersPath+"/"+url.PathEscape(router), "").body, &r); err != nil {
		c.t.Fatal(err)
	}
	return r.Gateway
}

func (c *cloud) waitForGateway(router string, want ...string) (got string) {
	c.t.Helper()
	eventually(c.t, router+" is on one of "+strings.Join(want, ", "), func() bool {
		got = c.gateway(router)
		return slices.Contains(want, got)
	})
	return got
}

func (c *cloud) waitForNodes(hosts ...string) {
	c.t.Helper()
	eventually(c.t, "the nodes are COMPLETE", func() bool {
		db := c.db.Snapshot()
		return !slices.ContainsFunc(hosts, func(h string) bool { return db.NodeState(h) != model.NodeComplete })
	})
}

// collections are the lists of a backup, in the order in which it is restored.
var collections = []struct{ path, wrapper, key string }{
	{nodesPath, "nodes", "hostname"},
	{networksPath, "networks", "networkId"},
	{networkingPath + "/security-group", "security-groups", "id"},
	{routersPath, "routers", "name"},
	{networkingPath + "/port", "ports", "macAddress"},
	{networkingPath + "/floating-ip", "floating-ips", "id"},
	{networkingPath + "/loadbalancer", "loadBalancers", "name"},
}

// backup takes all GETs: lists, and each object by itself, which must say what the
// list says.
func (c *cloud) backup() map[string]string {
	c.t.Helper()
	out := map[string]string{}
	get := func(path string) []byte {
		b := c.must(200, "GET", path, "").body
		out[path] = string(b)
		return b
	}
	for _, col := range collections {
		for _, item := range items(c.t, get(col.path), col.wrapper) {
			var o map[string]any
			if err := json.Unmarshal(item, &o); err != nil {
				c.t.Fatal(err)
			}
			path := col.path + "/" + escapeSegment(o[col.key].(string))
			if one := get(path); string(one) != string(item) {
				c.t.Errorf("GET %s: %s, in the list it is %s", path, one, item)
			}
		}
	}
	for _, kind := range mm5Kinds {
		get(mm5Path + "/" + kind.name)
	}
	return out
}

func items(t testing.TB, list []byte, wrapper string) []json.RawMessage {
	t.Helper()
	var out map[string][]json.RawMessage
	if err := json.Unmarshal(list, &out); err != nil || len(out[wrapper]) == 0 {
		t.Fatalf("no %s in %s: %v", wrapper, list, err)
	}
	return out[wrapper]
}

// restore posts everything back as it came.
func (c *cloud) restore(backup map[string]string) {
	c.t.Helper()
	for _, col := range collections {
		if col.path == nodesPath { // the list is the body
			c.must(201, "POST", col.path, backup[col.path])
			c.waitForNodes("gw1", "gw2", "w/1")
			continue
		}
		for _, item := range items(c.t, []byte(backup[col.path]), col.wrapper) {
			c.must(201, "POST", col.path, string(item))
		}
	}
}

// everything is at least one object of each kind and form.
var everything = []struct{ path, body string }{
	{nodesPath, `{"nodes":[
		{"hostname":"gw1","type":"GATEWAY","managementIp":"10.0.0.1","dataIp":"10.1.0.1","integrationBridge":"of:11","tunnelBridge":"of:12",
		 "phyIntfs":[{"network":"up","intf":"eth1","physBridgeId":"of:13"},{"network":"dc","intf":"eth2","physBridgeId":"of:14"}],"gatewayBridgeName":"up"},
		{"hostname":"gw2","type":"GATEWAY","managementIp":"10.0.0.2","dataIp":"10.1.0.2","integrationBridge":"of:21","tunnelBridge":"of:22",
		 "phyIntfs":[{"network":"up","intf":"eth1","physBridgeId":"of:23"}],"gatewayBridgeName":"up"},
		{"hostname":"w/1","type":"WORKER","managementIp":"10.0.0.3","dataIp":"10.1.0.3","integrationBridge":"of:31","tunnelBridge":"of:32",
		 "phyIntfs":[{"network":"dc","intf":"eth2"}]},
		{"hostname":"m","type":"MASTER","managementIp":"2001:db8::4"},{"hostname":"o","type":"OTHER","managementIp":"10.0.0.5"}]}`},
	{networksPath, network("vxlan", "VXLAN", `"segmentId":100,"hostRoutes":[{"destination":"10.9.0.7/16","nexthop":"10.0.0.254"},{"destination":"10.8.0.0/16"}],"dnses":["8.8.8.8","2001:db8::53"]`)},
	{networksPath, network("gre", "GRE", `"segmentId":"16777215"`)},
	{networksPath, network("geneve", "GENEVE", `"segmentId":"1"`)},
	{networksPath, network("stt", "STT", `"segmentId":"4"`)},
	{networksPath, network("flat", "FLAT", `"segmentId":"dropped"`)},
	{networksPath, network("a/b ..%ä", "VLAN", `"segmentId":"4094","mtu":-1,"defaultRoute":false`)},
	{networkingPath + "/security-group", `{"id":"sg","name":"","description":"","rules":[
		{"id":"1","securityGroupId":"sg","direction":"ingress","etherType":"IPv4","portRangeMax":0,"portRangeMin":0,"protocol":6,"remoteIpPrefix":"10.0.0.9/8","remoteGroupId":""},
		{"id":"2","securityGroupId":"sg","direction":"EGRESS"}]}`},
	{networkingPath + "/security-group", `{"id":"empty","name":"empty"}`},
	{routersPath, `{"name":"r1","enableSnat":true,"mac":"fe:00:00:00:00:01","description":"","internal":["vxlan","gre"],
		"external":{"ip":"203.0.113.5","network":"flat"},"peerRouter":{"ip":"203.0.113.1"}}`},
	{routersPath, `{"name":"r/2","mac":"fe:00:00:00:00:02","external":[{"ip":"203.0.113.6","network":"flat"}],"peerRouter":{"ip":"203.0.113.2","mac":"00:00:5e:00:53:02"}}`},
	{routersPath, `{"name":"r3","mac":"fe:00:00:00:00:03"}`},
	{networkingPath + "/port", `{"vmName":"vm1","networkId":"vxlan","macAddress":"fa:00:00:00:00:01","ipAddress":"10.0.0.5","deviceId":"of:31","portNumber":17,"securityGroups":["sg","empty"]}`},
	{networkingPath + "/port", `{"vmName":"vm1","networkId":"gre","macAddress":"fa:00:00:00:00:02"}`},
	{networkingPath + "/floating-ip", `{"id":"f/1","routerName":"r1","networkName":"flat","floatingIp":"203.0.113.50","podName":"","vmName":"vm1","fixedIp":"10.0.0.5"}`},
	{networkingPath + "/floating-ip", `{"id":"f2","routerName":"r/2","networkName":"flat","floatingIp":"203.0.113.51"}`},
	{networkingPath + "/loadbalancer", `{"name":"lb","vip":"10.0.0.100","networkId":"vxlan","description":"d","members":["10.0.0.5","10.0.0.6","10.0.0.5"],
		"rules":[{"protocol":"tcp","portRangeMax":90,"portRangeMin":80},{"protocol":"ICMP"},{"protocol":"odd"},{}]}`},
	{networkingPath + "/loadbalancer", `{"name":"lb2","vip":"10.0.0.101","networkId":"absent"}`},
}

func network(id, kind, fields string) string {
	b := strings.Replace(networkBody(id), `"type":"FLAT"`, `"type":"`+kind+`"`, 1)
	return strings.TrimSuffix(b, "}") + "," + fields + "}"
}

var allSwitches = []model.DPID{0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x31, 0x32}

// TestBackupIsPostedBackUnchanged: what the GETs say makes an empty server say the
// same. What was decided, though it was written then, is no wish that stays: the
// router moves when its gateway dies, and the upstream router's MAC is learned
// anew.
func TestBackupIsPostedBackUnchanged(t *testing.T) {
	a := newCloud(t)
	a.connect(allSwitches...)
	for i, o := range everything {
		a.must(201, "POST", o.path, o.body)
		if i == 0 {
			a.waitForNodes("gw1", "gw2", "w/1")
		}
	}
	gateways := map[string]string{}
	for _, r := range []string{"r1", "r/2", "r3"} {
		gateways[r] = a.waitForGateway(r, "gw1", "gw2")
	}
	peer := netip.MustParseAddr("203.0.113.1")
	learned := model.MAC{0, 0, 0x5e, 0, 0x53, 0x99}
	if err := a.decider.Learned(t.Context(), "r1", peer, learned); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the learned MAC is seen", func() bool {
		return strings.Contains(string(a.must(200, "GET", routersPath+"/r1", "").body), `"mac":"00:00:5E:00:53:99"`)
	})
	backup := a.backup()

	b := newCloud(t)
	b.connect(allSwitches...)
	b.restore(backup)
	for r, gw := range gateways {
		b.waitForGateway(r, gw)
	}
	for path, was := range backup {
		if is := string(b.must(200, "GET", path, "").body); is != was {
			t.Errorf("GET %s\nwas %s\n is %s", path, was, is)
		}
	}
	if again := b.backup(); len(again) != len(backup) {
		t.Errorf("%d objects were restored of %d", len(again), len(backup))
	}

	// The gateway of r1 dies: the router goes to the other one, and stays there
	// when the first comes back.
	first, second, bridges := gateways["r1"], "gw2", []model.DPID{0x11, 0x12, 0x13, 0x14}
	if first == "gw2" {
		second, bridges = "gw1", []model.DPID{0x21, 0x22, 0x23}
	}
	for _, bridge := range bridges {
		b.db.SwitchDisconnected(bridge, "cut off")
	}
	b.waitForGateway("r1", second)
	b.connect(bridges...)
	b.waitForNodes(first)
	b.must(200, "PUT", routersPath+"/r1", `{"name":"r1","mac":"fe:00:00:00:00:01","peerRouter":{"ip":"203.0.113.1"}}`)
	b.must(200, "PUT", routersPath+"/r3", `{"name":"r3","mac":"fe:00:00:00:00:03","gateway":"`+first+`"}`)
	b.waitForGateway("r3", first) // so all routers were considered once more
	if got := b.gateway("r1"); got != second {
		t.Errorf("r1 went back to %s", got)
	}
	// The upstream router is another one now.
	if err := b.decider.Learned(t.Context(), "r1", peer, model.MAC{0, 0, 0x5e, 0, 0x53, 0x77}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new MAC is seen", func() bool {
		return strings.Contains(string(b.must(200, "GET", routersPath+"/r1", "").body), `"mac":"00:00:5E:00:53:77"`)
	})
}

// TestBackupOfAServerIsPostedBackToIt after everything was deleted.
func TestBackupOfAServerIsPostedBackToIt(t *testing.T) {
	c := newCloud(t)
	c.connect(allSwitches...)
	for i, o := range everything {
		c.must(201, "POST", o.path, o.body)
		if i == 0 {
			c.waitForNodes("gw1", "gw2", "w/1")
		}
	}
	for _, r := range []string{"r1", "r/2", "r3"} {
		c.waitForGateway(r, "gw1", "gw2")
	}
	backup := c.backup()
	for _, col := range slices.Backward(collections) {
		for _, item := range items(t, []byte(backup[col.path]), col.wrapper) {
			var o map[string]any
			if err := json.Unmarshal(item, &o); err != nil {
				t.Fatal(err)
			}
			c.must(204, "DELETE", col.path+"/"+escapeSegment(o[col.key].(string)), "")
		}
	}
	c.restore(backup)
	for path, was := range backup {
		eventually(t, "GET "+path+" says "+was, func() bool { return string(c.must(200, "GET", path, "").body) == was })
	}
}
