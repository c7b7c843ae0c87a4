package rest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvnet/model"
	"kvnet/model/state"
)

// fixtureCodec reads a file of an entity, and writes what it read.
type fixtureCodec func(raw json.RawMessage) (encoded any, err error)

// stored is a state that holds one object.
func stored(t testing.TB, o model.Object) state.Snapshot {
	t.Helper()
	db := state.New()
	if err := db.Replace(1, []model.Object{o}); err != nil {
		t.Fatal(err)
	}
	return db.Snapshot()
}

// inside wraps the fixture of a part into a whole that is valid otherwise, and
// returns the part of what was encoded.
func inside(codec fixtureCodec, whole string, part ...any) fixtureCodec {
	return func(raw json.RawMessage) (any, error) {
		v, err := codec(json.RawMessage(strings.Replace(whole, "$", string(raw), 1)))
		if err != nil {
			return nil, err
		}
		b, err := marshal(v)
		if err != nil {
			return nil, err
		}
		x := parseJSON(b)
		for _, p := range part {
			switch p := p.(type) {
			case string:
				x = x.(map[string]any)[p]
			case int:
				x = x.([]any)[p]
			}
		}
		return x, nil
	}
}

func fixtureCodecs(t testing.TB) map[string]fixtureCodec {
	network := func(raw json.RawMessage) (any, error) {
		n, err := decodeRaw[networkJSON](raw)
		if err != nil {
			return nil, err
		}
		return encodeNetwork(n.apply(nil).(*model.Network)), nil
	}
	lb := func(raw json.RawMessage) (any, error) {
		l, err := decodeRaw[loadBalancerJSON](raw)
		if err != nil {
			return nil, err
		}
		return encodeLoadBalancer(l.apply(nil).(*model.LoadBalancer)), nil
	}
	sg := func(raw json.RawMessage) (any, error) {
		g, err := decodeRaw[securityGroupJSON](raw)
		if err != nil {
			return nil, err
		}
		return encodeSecurityGroup(g.apply(nil).(*model.SecurityGroup)), nil
	}
	nodes := func(raw json.RawMessage) (any, error) {
		n, err := decodeRaw[nodesJSON](raw)
		if err != nil {
			return nil, err
		}
		out := []any{}
		for i := range *n.Nodes {
			m := (*n.Nodes)[i].model()
			out = append(out, encodeNode(stored(t, m), m))
		}
		return map[string]any{"nodes": out}, nil
	}
	const (
		aNetwork = `{"networkId":"n","type":"FLAT","name":"n","mtu":1500,"gatewayIp":"203.0.113.1","defaultRoute":true,"cidr":"203.0.113.0/24",`
		aPool    = `"ipPool":{"start":"203.0.113.9","end":"203.0.113.9"}`
	)
	return map[string]fixtureCodec{
		"network":   network,
		"ippool":    inside(network, aNetwork+`"ipPool":$}`, "ipPool"),
		"hostroute": inside(network, aNetwork+aPool+`,"hostRoutes":[$]}`, "hostRoutes", 0),
		"router": func(raw json.RawMessage) (any, error) {
			r, err := decodeRaw[routerJSON](raw)
			if err != nil {
				return nil, err
			}
			m := r.apply(nil).(*model.Router)
			return encodeRouter(stored(t, m), m), nil
		},
		"floatingip": func(raw json.RawMessage) (any, error) {
			i, err := decodeRaw[floatingIPJSON](raw)
			if err != nil {
				return nil, err
			}
			return encodeFloatingIP(i.apply(nil).(*model.FloatingIP)), nil
		},
		"loadbalancer":      lb,
		"loadbalancerrule":  inside(lb, `{"name":"l","vip":"10.0.0.1","networkId":"n","rules":[$]}`, "rules", 0),
		"securitygroup":     sg,
		"securitygrouprule": inside(sg, `{"id":"g","name":"g","rules":[$]}`, "rules", 0),
		"port": func(raw json.RawMessage) (any, error) {
			p, err := decodeRaw[portJSON](raw)
			if err != nil {
				return nil, err
			}
			return encodePort(p.apply(nil).(*model.Port)), nil
		},
		"node":         inside(nodes, `{"nodes":[$]}`, "nodes", 0),
		"phyinterface": inside(nodes, `{"nodes":[{"hostname":"h","type":"WORKER","managementIp":"10.0.0.1","phyIntfs":[$]}]}`, "nodes", 0, "phyIntfs", 0),
		"request":      nodes,
		"apiconfig": func(raw json.RawMessage) (any, error) {
			a, err := decodeRaw[apiConfigJSON](raw)
			if err != nil {
				return nil, err
			}
			return withSecrets(a.apply(nil).(*model.APIConfig)), nil
		},
	}
}

// withSecrets is what ONOS's codec writes. Clients of kvnet never see it.
func withSecrets(c *model.APIConfig) *apiConfigJSON {
	out := encodeAPIConfig(c)
	out.ClientKeyData, out.Token = textOrNil(string(c.ClientKeyData)), textOrNil(string(c.Token))
	return out
}

// changed are the outcomes that the improve column of the quirks decides.
var changed = map[string]struct {
	quirk   string
	refused string // the field that the sentence names
	encoded string // or what is encoded; "*": whatever it is
}{
	"network-coerced-mtu-text":                   {quirk: "C5", refused: "mtu"},
	"loadbalancerrule-port-text":                 {quirk: "C5", refused: "portRangeMin"},
	"network-segment-text":                       {quirk: "P4", refused: "segmentId"},
	"apiconfig-port-text":                        {quirk: "C5", refused: "port"},
	"apiconfig-http-with-token":                  {quirk: "C4", encoded: "null datacenterId"},
	"apiconfig-invalid-controller-null":          {quirk: "C4", encoded: "*"},
	"floatingip-null-vm":                         {quirk: "C4", encoded: "without vmName"},
	"securitygroup-null-description":             {quirk: "C4", encoded: "without description"},
	"securitygrouprule-nulls-become-text":        {quirk: "C4", encoded: "without etherType,portRangeMax,portRangeMin,protocol,remoteGroupId"},
	"floatingip-invalid-fixed-null":              {quirk: "C4", encoded: "*"},
	"router-invalid-peer-mac-null":               {quirk: "C4", encoded: "*"},
	"router-invalid-peer-null":                   {quirk: "C4", encoded: "*"},
	"node-invalid-data-ip-null":                  {quirk: "C4", encoded: "*"},
	"hostroute-invalid-nexthop-null":             {quirk: "C4", encoded: "*"},
	"securitygrouprule-invalid-prefix-null":      {quirk: "C4", encoded: "*"},
	"loadbalancer-invalid-members-null":          {quirk: "C4", encoded: "*"},
	"port-maximal":                               {quirk: "C2", encoded: "with groups"},
	"router-invalid-external-array":              {quirk: "C1", encoded: "*"},
	"request-nodes-invalid-duplicate-no-bridges": {quirk: "C16", encoded: "*"},
	"phyinterface-invalid-no-bridge":             {quirk: "C11", encoded: "*"},
	"node-invalid-phy-without-bridge":            {quirk: "C11", encoded: "*"},
}

// fixtures is the number of files, so that none gets lost unnoticed.
const fixtures = 141

// TestFixtures decodes every file and encodes what is accepted.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/fixtures/*.json")
	if err != nil || len(files) != fixtures {
		t.Fatalf("%d fixtures, want %d: %v", len(files), fixtures, err)
	}
	codecs := fixtureCodecs(t)
	seen := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		entity, _, _ := strings.Cut(name, "-")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			raw, err = firstValue(raw)
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := codecs[entity](raw)
			checkFixture(t, name, encoded, err)
		})
	}
	for name := range changed {
		if !seen[name] {
			t.Errorf("there is no fixture %s", name)
		}
	}
}

func checkFixture(t *testing.T, name string, encoded any, err error) {
	t.Helper()
	want, readErr := os.ReadFile("testdata/fixtures/expected/" + name + ".json")
	accepted := readErr == nil || strings.HasPrefix(name, "request-nodes-two") || strings.HasPrefix(name, "request-nodes-empty")
	how := changed[name]
	switch {
	case how.refused != "":
		if err == nil || !strings.Contains(err.Error(), how.refused) {
			t.Fatalf("error %v, want one that names %s (%s)", err, how.refused, how.quirk)
		}
		return
	case how.encoded == "*" || accepted:
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
	default:
		if err == nil {
			t.Fatal("accepted, want a refusal")
		}
		if e := asAPIError(err); e.code != 400 || strings.TrimSpace(e.message) == "" {
			t.Fatalf("refused with %d %q", e.code, e.message)
		}
		return
	}
	if want == nil {
		return
	}
	got, err := marshal(encoded)
	if err != nil {
		t.Fatal(err)
	}
	w := parseJSON(want)
	o, _ := w.(map[string]any)
	if fields, ok := strings.CutPrefix(how.encoded, "without "); ok {
		for f := range strings.SplitSeq(fields, ",") {
			delete(o, f)
		}
	}
	if field, ok := strings.CutPrefix(how.encoded, "null "); ok {
		o[field] = nil
	}
	if how.encoded == "with groups" {
		o["securityGroups"] = []any{"sg-1", "sg-2"}
	}
	if o != nil && strings.HasPrefix(name, "node-") {
		addBridges(o)
	}
	if !equalJSON(parseJSON(got), w) {
		wb, _ := json.Marshal(w)
		t.Errorf("encoded %s\nwant    %s", got, wb)
	}
}

// addBridges fills in the bridges that a stored node has: the fixtures hold what
// the codec writes before they are made.
func addBridges(node map[string]any) {
	host := node["hostname"].(string)
	for field, name := range map[string]string{"integrationBridge": "br-int-", "tunnelBridge": "br-tun-"} {
		if node[field] == nil {
			node[field] = string(model.BridgeDeviceID(name + host))
		}
	}
}

// TestKeyOrder holds the order of keys against what ONOS wrote.
func TestKeyOrder(t *testing.T) {
	codecs := fixtureCodecs(t)
	for name, want := range map[string]string{
		"network-maximal-geneve": "networkId type name mtu gatewayIp defaultRoute cidr segmentId hostRoutes ipPool dnses",
		"router-maximal":         "name enableSnat mac description internal external peerRouter gateway",
		"floatingip-maximal":     "id routerName networkName floatingIp podName vmName fixedIp",
		"loadbalancer-maximal":   "name vip networkId description members rules",
		"securitygroup-maximal":  "id name description rules",
		"apiconfig-maximal-https": "scheme ipAddress port state datacenterId clusterId caCertData clientCertData clientKeyData token" +
			" serviceFqdn apiServerFqdn controllerIp",
		"port-maximal": "vmName networkId macAddress ipAddress deviceId portNumber securityGroups",
	} {
		raw, err := os.ReadFile("testdata/fixtures/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		entity, _, _ := strings.Cut(name, "-")
		v, err := codecs[entity](raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(topKeys(t, b), " "); got != want {
			t.Errorf("%s: keys %s, want %s", name, got, want)
		}
	}
	n := &model.Node{Hostname: "h", Type: model.NodeGateway, ManagementIP: address(ptr("10.0.0.1")), DataIP: address(ptr("10.0.0.2")),
		IntegrationBridge: "of:1", TunnelBridge: "of:2", PhysIntfs: []model.PhysicalIntf{{Network: "p", Intf: "e", PhysBridge: "of:3"}},
		GatewayBridgeName: ptr("p")}
	b, err := marshal(encodeNode(stored(t, n), n))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"hostname":"h","type":"GATEWAY","state":"INIT","managementIp":"10.0.0.1","integrationBridge":"of:1",` +
		`"tunnelBridge":"of:2","dataIp":"10.0.0.2","phyIntfs":[{"network":"p","intf":"e","physBridgeId":"of:3"}],"gatewayBridgeName":"p"}`
	if string(b) != want {
		t.Errorf("node %s, want %s", b, want)
	}
}

func topKeys(t *testing.T, b []byte) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.(string))
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}
