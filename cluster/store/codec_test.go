package store

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvnet/model"
)

// hostileIDs are legal names of objects.
var hostileIDs = []string{
	"a/b", "../x", "..", ".", "/", "//", "http://x/y?z=1#f", " ", "", "\t\n", "a b", "%", "%2F", "a%2fb",
	"fip", "ref/router/x", "status/router/x", "leader", "meta", "netzwerk-ä", "ネット", "🦀", "\x00", "\x7f",
	"a\u2028b", "\u00e9", "e\u0301", strings.Repeat("x", 4096), `"`, `\`, "<script>", "+", "a+b", ";,=&",
}

func mustObjectKey(kind model.Kind, id string) string {
	key, ok := objectKey(kind, id)
	if !ok {
		panic("not stored: " + kind)
	}
	return key
}

func TestHostileNamesRoundTrip(t *testing.T) {
	f := open(t, config(t))
	for _, id := range hostileIDs {
		f.at(f.Create(ctx(t), network(id)))
		f.at(f.Create(ctx(t), router(id)))
		f.at(f.Create(ctx(t), fip(id, id)))
		f.at(f.Create(ctx(t), node(id, model.DeviceID("int"+id), model.DeviceID("tun"+id))))
	}
	check := func() {
		t.Helper()
		s := f.db.Snapshot()
		for _, k := range []model.Kind{model.KindNetwork, model.KindRouter, model.KindFloatingIP, model.KindNode} {
			if got := len(s.Keys(k)); got != len(hostileIDs) {
				t.Errorf("%d objects of kind %s, want %d", got, k, len(hostileIDs))
			}
			for _, id := range hostileIDs {
				if o := s.Get(k, id); o == nil || o.Key() != id {
					t.Errorf("%s %q: %v", k, id, o)
				}
			}
		}
	}
	check()
	if _, err := f.load(ctx(t), true); err != nil {
		t.Fatal(err)
	}
	check()
	f.wantRefs()
	for _, id := range hostileIDs {
		if id != "" {
			_, err := f.Delete(ctx(t), model.KindRouter, id)
			wantErr(t, err, ErrInUse)
		}
		f.at(f.Delete(ctx(t), model.KindFloatingIP, id))
		f.at(f.Delete(ctx(t), model.KindRouter, id))
		f.at(f.Delete(ctx(t), model.KindNetwork, id))
		f.at(f.Delete(ctx(t), model.KindNode, id))
	}
	f.wantRefs()
}

func TestAKeyIsOneSegmentAndIsReadBack(t *testing.T) {
	for _, id := range hostileIDs {
		for kind := range segments {
			key := mustObjectKey(kind, id)
			if strings.Contains(strings.TrimPrefix(key, prefix+segments[kind]+"/"), "/") {
				t.Errorf("key %q has more segments", key)
			}
			if c, k, got, err := parseKey(key); c != classObject || k != kind || got != id || err != nil {
				t.Errorf("%q: %v %q %q %v", key, c, k, got, err)
			}
		}
	}
}

func TestANameHasOneKey(t *testing.T) {
	for _, key := range []string{"network/a%2fb", "network/%61", "network/a b", "network/%", "network/%zz", "network/ä"} {
		if _, _, id, err := parseKey(prefix + key); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q was read as %q, %v", key, id, err)
		}
	}
}

func TestEveryStoredKindHasAKeyAndAType(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range slices.Concat(model.WantedKinds, model.DecidedKinds) {
		seg, ok := segments[k]
		if !ok || seen[seg] || kinds[seg] != k {
			t.Errorf("kind %q has the segment %q", k, seg)
		}
		seen[seg] = true
		if o := newObject(k); o == nil || o.Kind() != k {
			t.Errorf("an object of kind %q is %v", k, o)
		}
	}
	if len(segments) != len(seen) {
		t.Errorf("%d segments for %d kinds", len(segments), len(seen))
	}
}

// full are objects in which every field is set, zero in which none is.
func full() []model.Object {
	text, num, port := "text", int32(-7), uint32(9)
	mac := model.MAC{1, 2, 3, 4, 5, 6}
	ip, ip6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1%eth0")
	return []model.Object{
		&model.Network{ID: "n", Type: model.NetworkVLAN, Name: "n<&>\u2028", MTU: 1, SegmentID: "5", GatewayIP: ip, DefaultRoute: true,
			CIDR: "10.0.0.0/24", HostRoutes: []model.HostRoute{{Destination: netip.MustParsePrefix("10.0.0.0/8"), Nexthop: ip}, {}},
			IPPool: model.IPPool{Start: ip, End: ip6}, DNSes: []netip.Addr{ip, ip6}},
		&model.Router{Name: "r", Description: &text, EnableSNAT: true, MAC: mac, Internal: []string{"a"},
			External: &model.External{IPText: "x", NetworkID: "n"}, Peer: &model.PeerRouter{IP: ip, MAC: mac, Write: 1 << 63},
			Gateway: "g", GatewayWrite: 1<<64 - 1},
		&model.Port{VMName: "v", NetworkID: "n", MAC: mac, IP: ip, DeviceID: "of:1", PortNumber: &port, SecurityGroups: []string{"s"}},
		&model.FloatingIP{ID: "f", RouterName: "r", NetworkName: "n", FloatingIP: ip, PodName: &text, VMName: &text, FixedIP: ip},
		&model.LoadBalancer{Name: "l", Description: &text, VIP: ip, NetworkID: "n", Members: []netip.Addr{ip},
			Rules: []model.LoadBalancerRule{{Protocol: "TCP", PortRangeMin: &num, PortRangeMax: &num}, {}}},
		&model.SecurityGroup{ID: "s", Name: "s", Description: &text, Rules: []model.SecurityGroupRule{
			{ID: "1", SecurityGroupID: "s", Direction: "INGRESS", EtherType: &text, PortRangeMax: &num, PortRangeMin: &num,
				Protocol: &text, RemoteIPPrefix: netip.MustParsePrefix("10.0.0.0/8"), RemoteGroupID: &text}, {}}},
		&model.Node{Hostname: "h", Type: model.NodeGateway, ManagementIP: ip, DataIP: ip, IntegrationBridge: "of:1", TunnelBridge: "of:2",
			PhysIntfs: []model.PhysicalIntf{{Network: "p", Intf: "eth0", PhysBridge: "of:3"}}, GatewayBridgeName: &text, InitRequest: 3},
		&model.APIConfig{Scheme: model.SchemeHTTPS, IPAddress: ip, Port: 6443, DatacenterID: &text, ClusterID: &text, CACertData: &text,
			ClientCertData: &text, ClientKeyData: "key", Token: "token", ServiceFQDN: &text, APIServerFQDN: &text, ControllerIP: ip},
		&model.RouterStatus{Name: "r", Life: 1 << 62, Gateway: "g", GatewayWrite: 2, PeerIP: ip, PeerMAC: mac, PeerWrite: 3, Zone: 65535},
		&model.LoadBalancerStatus{Name: "l", Life: 5, GroupID: 0x6bffffff},
		&model.NodeStatus{Hostname: "h", Life: 6, State: model.NodeComplete, InitRequest: 7, ExternalMAC: model.FirstExternalMAC},
	}
}

func TestStoredValuesRoundTrip(t *testing.T) {
	objects := full()
	for kind := range segments {
		objects = append(objects, newObject(kind)) // all fields zero
	}
	for _, o := range objects {
		b, err := encodeObject(o, maxRequest)
		if err != nil {
			t.Errorf("%s: %v", o.Kind(), err)
			continue
		}
		got, err := decodeObject(o.Kind(), o.Key(), b)
		if err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("%s: %v\nwrote %+v\n read %+v\n  via %s", o.Kind(), err, o, got, b)
		}
	}
}

func TestTheTestOfRoundTripsSetsEveryField(t *testing.T) {
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		if path != "" && v.IsZero() {
			t.Errorf("%s is not set", path)
		}
		switch {
		case v.Kind() == reflect.Pointer && !v.IsNil():
			walk(path, v.Elem())
		case v.Kind() == reflect.Slice && v.Len() > 0:
			walk(path+"[0]", v.Index(0))
		case v.Kind() == reflect.Struct && strings.HasPrefix(v.Type().PkgPath(), "kvnet/"):
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.Name != "Meta" {
					walk(v.Type().Name()+"."+f.Name, v.Field(i))
				}
			}
		}
	}
	for _, o := range full() {
		walk("", reflect.ValueOf(o).Elem())
	}
}

func TestRevisionsAreNoPartOfTheValue(t *testing.T) {
	a, b := network("n"), network("n")
	b.Meta = model.Meta{Created: 1, Modified: 2}
	x, _ := encodeObject(a, maxRequest)
	y, _ := encodeObject(b, maxRequest)
	if string(x) != string(y) {
		t.Fatalf("%s and %s", x, y)
	}
}

func TestUnknownFieldsAreTolerated(t *testing.T) {
	o, err := decodeObject(model.KindNetwork, "n", []byte(`{"v":1,"future":{},"o":{"id":"n","mtu":5,"future":[1,{"x":2}]}}`))
	if err != nil || o.(*model.Network).MTU != 5 {
		t.Fatalf("%+v, %v", o, err)
	}
}

func TestWhatCannotBeReadAgainIsNotWritten(t *testing.T) {
	n := network("n")
	n.HostRoutes = []model.HostRoute{{Destination: netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 99)}}
	for name, o := range map[string]model.Object{
		"an invalid prefix":        n,
		"a name that is not UTF-8": network("\xff"),
	} {
		if b, err := encodeObject(o, maxRequest); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
}

func TestValuesOfANewerVersionAreNamed(t *testing.T) {
	c := config(t)
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))
	key := mustObjectKey(model.KindNetwork, "n/1")
	if _, err := f.client.Put(ctx(t), key, `{"v":2,"o":{}}`); err != nil {
		t.Fatal(err)
	}
	_, err := f.load(ctx(t), true)
	wantErr(t, err, ErrNewer)
	if !strings.Contains(err.Error(), key) {
		t.Errorf("the error does not name the key: %v", err)
	}
	_, err = f.Update(ctx(t), model.KindNetwork, "n/1", func(o model.Object) (model.Object, error) { return o, nil })
	wantErr(t, err, ErrNewer)
}

func FuzzKeyEscaping(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id, "network/"+id)
	}
	f.Fuzz(func(t *testing.T, id, key string) {
		if got, err := unescape(escape(id)); err != nil || got != id || strings.Contains(escape(id), "/") {
			t.Fatalf("%q became %q and that %q, %v", id, escape(id), got, err)
		}
		// A key that is accepted is the key of what it names.
		c, kind, got, err := parseKey(prefix + key)
		if err == nil && c == classObject && mustObjectKey(kind, got) != prefix+key {
			t.Fatalf("key %q names %s %q, whose key is %q", prefix+key, kind, got, mustObjectKey(kind, got))
		}
	})
}

func FuzzValueDecoding(f *testing.F) {
	all := slices.Concat(model.WantedKinds, model.DecidedKinds)
	for i, k := range all {
		for _, o := range full() {
			if o.Kind() == k {
				b, err := encodeObject(o, maxRequest)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(uint8(i), o.Key(), b)
			}
		}
	}
	f.Add(uint8(0), "n", []byte(`{"v":1,"o":null}`))
	f.Add(uint8(0), "", []byte(`{"v":-1}`))
	f.Fuzz(func(t *testing.T, k uint8, key string, b []byte) {
		kind := all[int(k)%len(all)]
		o, err := decodeObject(kind, key, b)
		if err != nil {
			return
		}
		if o.Kind() != kind || o.Key() != key {
			t.Fatalf("%s %q was read as %s %q", kind, key, o.Kind(), o.Key())
		}
		// What was read can be written, and is the same then.
		again, err := encodeObject(o, maxRequest)
		if err != nil {
			t.Fatalf("%+v can't be written: %v", o, err)
		}
		o2, err := decodeObject(kind, key, again)
		if err != nil {
			t.Fatalf("%s can't be read: %v", again, err)
		}
		third, err := encodeObject(o2, maxRequest)
		if err != nil || string(third) != string(again) {
			t.Fatalf("%s became %s, %v", again, third, err)
		}
	})
}
