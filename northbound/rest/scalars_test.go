package rest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestScalarsAreCoerced as in ONOS's codecs; where ONOS loses what was meant, the
// value is refused. "" for the wanted value: refused, and the field is named.
func TestScalarsAreCoerced(t *testing.T) {
	l := newLab(t)
	network := strings.TrimSuffix(networkBody("n"), "}")
	port := `{"vmName":"v","networkId":"n","macAddress":"fa:00:00:00:00:01"`
	rule := `{"id":"g","name":"g","rules":[{"id":"r","securityGroupId":"g","direction":"ingress"`
	kinds := map[string]struct{ path, body, end, key string }{
		"network": {networksPath, network, "}", "n"},
		"port":    {networkingPath + "/port", port, "}", "fa:00:00:00:00:01"},
		"rule":    {networkingPath + "/security-group", rule, "}]}", "g"},
	}
	for _, c := range []struct{ kind, field, written, want string }{
		{"network", "name", `5`, `"5"`},
		{"network", "name", `1.50`, `"1.5"`},
		{"network", "name", `true`, `"true"`},
		{"network", "name", `""`, `""`},
		{"network", "name", `"\u00e4\ud83d\ude00"`, `"ä😀"`},
		{"network", "name", `null`, ""},
		{"network", "name", `{}`, ""},
		{"network", "name", `["x"]`, ""},
		{"network", "mtu", `1450.9`, `1450`},
		{"network", "mtu", `-1.9`, `-1`},
		{"network", "mtu", `"9000"`, `9000`},
		{"network", "mtu", `" 9000 "`, `9000`},
		{"network", "mtu", `1e3`, `1000`},
		{"network", "mtu", `0`, `0`},
		{"network", "mtu", `true`, `1`},
		{"network", "mtu", `false`, `0`},
		{"network", "mtu", `2147483647`, `2147483647`},
		{"network", "mtu", `2147483648`, ""},
		{"network", "mtu", `"jumbo"`, ""},
		{"network", "mtu", `""`, ""},
		{"network", "mtu", `"0x10"`, ""},
		{"network", "mtu", `null`, ""},
		{"network", "mtu", `[]`, ""},
		{"network", "defaultRoute", `0`, `false`},
		{"network", "defaultRoute", `0.5`, `true`},
		{"network", "defaultRoute", `"true"`, `true`},
		{"network", "defaultRoute", `"false"`, `false`},
		{"network", "defaultRoute", `"yes"`, ""},
		{"network", "defaultRoute", `null`, ""},
		{"network", "defaultRoute", `{}`, ""},
		{"network", "gatewayIp", `"2001:DB8:0:0::0:1"`, `"2001:db8::1"`},
		{"network", "gatewayIp", `"10.0.0.01"`, ""},
		{"network", "gatewayIp", `10`, ""},
		{"network", "hostRoutes", `[{"destination":"10.3.0.5/16","nexthop":null}]`, `[{"destination":"10.3.0.0/16"}]`},
		{"network", "hostRoutes", `[]`, `null`},
		{"network", "hostRoutes", `null`, `null`},
		{"network", "hostRoutes", `["10.3.0.0/16"]`, ""},
		{"network", "hostRoutes", `[null]`, ""},
		{"network", "dnses", `[]`, `null`},
		{"network", "dnses", `["8.8.8.8","8.8.8.8"]`, `["8.8.8.8"]`},
		{"network", "dnses", `[null]`, ""},
		{"port", "portNumber", `17`, `"17"`},
		{"port", "portNumber", `"0x11"`, `"17"`},
		{"port", "portNumber", `"021"`, `"17"`},
		{"port", "portNumber", `0`, `"0"`},
		{"port", "portNumber", `null`, `null`},
		{"port", "portNumber", `-1`, ""},
		{"port", "portNumber", `"LOCAL"`, ""},
		{"port", "portNumber", `4294967296`, ""},
		{"port", "ipAddress", `null`, `null`},
		{"port", "ipAddress", `""`, ""},
		{"port", "deviceId", `"br-int"`, `"br-int"`},
		{"port", "deviceId", `"a b"`, ""},
		{"port", "securityGroups", `null`, `[]`},
		{"port", "securityGroups", `["b",5,"b"]`, `["5","b"]`},
		{"port", "macAddress", `"FA:00:00:00:00:01"`, `"FA:00:00:00:00:01"`},
		{"port", "macAddress", `"fa-00-00-00-00-01"`, ""},
		{"rule", "protocol", `6`, `"6"`},
		{"rule", "protocol", `null`, `null`},
		{"rule", "protocol", `""`, `""`},
		{"rule", "portRangeMin", `0`, `0`},
		{"rule", "portRangeMax", `"80"`, `80`},
		{"rule", "portRangeMax", `"http"`, ""},
		{"rule", "remoteIpPrefix", `"10.0.0.9/8"`, `"10.0.0.0/8"`},
		{"rule", "remoteIpPrefix", `""`, ""},
		{"rule", "remoteIpPrefix", `null`, `null`},
		{"rule", "remoteGroupId", `""`, `""`},
	} {
		k := kinds[c.kind]
		body := fmt.Sprintf(`%s,"%s":%s%s`, k.body, c.field, c.written, k.end)
		if c.want == "" {
			if r := l.call("POST", k.path, body); r.status != 400 || !strings.Contains(string(r.body), c.field) {
				t.Errorf("%s %s: %d %s, want 400 that names the field", c.field, c.written, r.status, r.body)
			}
			continue
		}
		if r := l.call("POST", k.path, body); r.status != 201 {
			t.Errorf("%s %s: %d %s", c.field, c.written, r.status, r.body)
			continue
		}
		got, _ := parseJSON(l.must(200, "GET", k.path+"/"+k.key, "").body).(map[string]any)
		if rules, ok := got["rules"].([]any); ok {
			got = rules[0].(map[string]any)
		}
		if !equalJSON(got[c.field], parseJSON([]byte(c.want))) {
			t.Errorf("%s %s became %v, want %s", c.field, c.written, got[c.field], c.want)
		}
		l.must(204, "DELETE", k.path+"/"+k.key, "")
	}
}

// TestBodiesAreReadAsInONOS: names count letter by letter, the last of equal ones
// counts, unknown ones don't, and text after the first value doesn't either.
func TestBodiesAreReadAsInONOS(t *testing.T) {
	l := newLab(t)
	fields := strings.TrimPrefix(networkBody("n"), "{")
	for what, body := range map[string]string{
		"text after it":        "{" + fields + "  } trailing {",
		"a second value":       "{" + fields + `{"networkId":"m"}`,
		"a byte order mark":    "\ufeff{" + fields,
		"a name twice":         `{"networkId":"first","name":{},` + fields,
		"unknown names":        `{"future":[{}],"NetworkId":"x","networkid":"y",` + fields,
		"blanks":               "\r\n\t { \n" + fields,
		"an escaped name":      strings.Replace("{"+fields, `"mtu"`, `"\u006dtu"`, 1),
		"names of other cases": `{"MTU":"x","Cidr":5,` + fields,
	} {
		if r := l.call("POST", networksPath, body); r.status != 201 {
			t.Errorf("%s: %d %s", what, r.status, r.body)
			continue
		}
		l.must(204, "DELETE", networksPath+"/n", "")
	}
	if r := l.must(400, "POST", networksPath, strings.Replace("{"+fields, "networkId", "networkid", 1)); !strings.Contains(string(r.body), "networkId is required in KubevirtNetwork") {
		t.Errorf("another case of the name: %s", r.body)
	}
}

// edges are all edge types.
var edges = map[string]edge{
	"networkJSON": &networkJSON{}, "nodesJSON": &nodesJSON{}, "routerJSON": &routerJSON{}, "floatingIPJSON": &floatingIPJSON{},
	"loadBalancerJSON": &loadBalancerJSON{}, "securityGroupJSON": &securityGroupJSON{}, "portJSON": &portJSON{},
	"apiConfigJSON": &apiConfigJSON{}, "adoptJSON": &adoptJSON{},
}

// TestZerosAreNotAbsent: for each edge type and all its parts, false, 0 and "" are
// values, and only what isn't there is missing.
func TestZerosAreNotAbsent(t *testing.T) {
	if found := edgeTypes(t); len(found) != len(edges) {
		t.Fatalf("the package has the edge types %v, this test knows %d", found, len(edges))
	}
	for name, e := range edges {
		required := map[string]bool{}
		zero := reflect.New(reflect.TypeOf(e).Elem())
		fillZero(zero.Elem(), "", required)
		if len(required) == 0 {
			t.Fatalf("%s requires nothing", name)
		}
		var f faults
		validateTags(zero.Interface().(edge), &f)
		for _, s := range f {
			if strings.Contains(s, "is required") {
				t.Errorf("%s with zeros: %s", name, s)
			}
		}
		// The same through JSON.
		body, err := json.Marshal(zero.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var d decoder
		again := reflect.New(reflect.TypeOf(e).Elem())
		d.object(body, again.Elem(), "")
		validateTags(again.Interface().(edge), &d.faults)
		for _, s := range d.faults {
			if strings.Contains(s, "is required") {
				t.Errorf("%s read from %s: %s", name, body, s)
			}
		}
		// Without them, all are missing.
		var missing faults
		validateTags(e, &missing)
		for field := range required {
			if !strings.Contains(field, ".") && !strings.Contains(strings.Join(missing, ";")+";", field+" is required in ") {
				t.Errorf("%s without %s: %v", name, field, missing)
			}
		}
	}
}

// fillZero makes all pointers point to zeros, gives lists one element, and notes
// which fields are required.
func fillZero(v reflect.Value, path string, required map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillZero(v.Elem(), path, required)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillZero(v.Index(0), path, required)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if strings.Contains(f.Tag.Get("validate"), "required") {
				required[joinPath(path, name)] = true
			}
			fillZero(v.Field(i), joinPath(path, name), required)
		}
	}
}

// edgeTypes are the types of the package that implement edge.
func edgeTypes(t *testing.T) (out []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range tree.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "entity" {
				name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
				if edges[name] == nil {
					t.Errorf("%s is an edge type that this test doesn't know", name)
				}
				out = append(out, name)
			}
		}
	}
	return out
}
