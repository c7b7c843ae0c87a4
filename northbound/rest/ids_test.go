package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// hostileIDs are names that paths and URLs make something else of.
var hostileIDs = []string{
	"a/b", "/", "a/", "//", "..", ".", "../x", "%", "%2F", "a%2Fb", "a b", " ", "a+b", "a?b=c", "a#b", "a;b", "a:b", "http://x/y", "ns:abc",
	"ä漢😀", "\u202e", "a\tb", "'\"<>&", `\`, "{id}", "*", ":id", "exist", "all", "incomplete", "healthz", "state", "init", "node", "network",
}

// TestIDsOfAnyCharacterInEveryKind: Location leads to the object, and all calls
// that name it find it.
func TestIDsOfAnyCharacterInEveryKind(t *testing.T) {
	l := newLab(t)
	for _, k := range []struct {
		path, key, rest string
		again           int // POST of what exists
	}{
		{networksPath, "networkId", strings.SplitN(networkBody("x"), `,"networkId":"x"`, 2)[0][1:], 400},
		{routersPath, "name", `"mac":"fe:00:00:00:00:01"`, 409},
		{networkingPath + "/floating-ip", "id", `"routerName":"r","networkName":"n","floatingIp":"10.0.0.1"`, 409},
		{networkingPath + "/loadbalancer", "name", `"vip":"10.0.0.1","networkId":"n"`, 409},
		{networkingPath + "/security-group", "id", `"name":"g"`, 409},
		{nodesPath, "hostname", `"type":"OTHER","managementIp":"10.0.0.1"`, 201},
	} {
		for _, id := range hostileIDs {
			if k.path == networksPath {
				k.rest = strings.TrimSuffix(networkBody("n"), "}")[1:] + `,"x":0` // the id below is the last of two
			}
			name, err := marshal(id)
			if err != nil {
				t.Fatal(err)
			}
			body := fmt.Sprintf(`{%s,"%s":%s}`, k.rest, k.key, name)
			if k.path == nodesPath {
				body = nodeBody(body)
			}
			what := fmt.Sprintf("%s %q", k.path, id)
			at := l.must(201, "POST", k.path, body).header.Get("Location")
			path, ok := strings.CutPrefix(at, "http://"+l.server.Addr().String())
			if !ok || strings.Count(path, "/") != strings.Count(k.path, "/")+1 {
				t.Fatalf("%s: Location %q", what, at)
			}
			l.must(k.again, "POST", k.path, body)
			// In ONOS a literal path wins: these names of nodes are calls.
			literal := k.path == nodesPath && (id == "healthz" || id == "state" || id == "init")
			if got := l.call("GET", path, ""); !literal || id != "healthz" {
				if o, _ := parseJSON(got.body).(map[string]any); got.status != 200 || o[k.key] != id {
					t.Errorf("%s: GET %s: %d %s", what, path, got.status, got.body)
				}
			}
			head := l.call("HEAD", path, "")
			if head.status != 200 || len(head.body) != 0 || head.header.Get("Content-Length") == "0" {
				t.Errorf("%s: HEAD %s: %d %v", what, path, head.status, head.header)
			}
			l.must(200, "OPTIONS", path, "")
			if k.path == networksPath {
				if r := l.must(200, "GET", networksPath+"/exist/"+escapeSegment(id), ""); string(r.body) != `{"result":true}` {
					t.Errorf("%s: exist says %s", what, r.body)
				}
			}
			if k.path == nodesPath {
				l.nodeCalls(id, what)
				l.must(200, "PUT", k.path, body)
				if id == "healthz" { // can't be deleted, as in ONOS
					l.must(405, "DELETE", path, "")
					continue
				}
			} else {
				l.must(200, "PUT", path, body)
			}
			l.must(204, "DELETE", path, "")
			absent := map[string]int{networksPath: 400, nodesPath: 304}[k.path]
			if absent == 0 {
				absent = 404
			}
			l.must(absent, "DELETE", path, "")
		}
	}
}

// nodeCalls are the calls below /node that name a node.
func (l *lab) nodeCalls(host, what string) {
	l.t.Helper()
	segment := escapeSegment(host)
	if r := l.must(200, "GET", nodesPath+"/state/"+segment, ""); string(r.body) != `{"State":"INIT"}` {
		l.t.Errorf("%s: state %s", what, r.body)
	}
	before := l.node(host).InitRequest
	for _, method := range []string{"GET", "POST"} {
		l.must(200, method, nodesPath+"/init/"+segment, "")
	}
	if got := l.node(host).InitRequest; got != before+2 {
		l.t.Errorf("%s: init was counted %d times, want 2", what, got-before)
	}
	for _, method := range []string{"GET", "PUT"} {
		r := l.must(200, method, mm5Path+"/state/mer/"+segment, "")
		if o, _ := parseJSON(r.body).(map[string]any); o["nodeName"] != host || o["state"] != "INACTIVE" {
			l.t.Errorf("%s: state/mer says %s", what, r.body)
		}
	}
}

// TestTrailingSlashesOfEveryCall: one slash more is the same call, two are none.
func TestTrailingSlashesOfEveryCall(t *testing.T) {
	l := newLab(t)
	for _, r := range l.server.table() {
		if strings.Contains(r.path, "*") || r.path == ownPath+"/events" || r.path == docsPath {
			continue // an id with slashes; a stream that doesn't end; a page that ONOS has at docs/ only
		}
		path := r.path
		for _, p := range []string{":id", ":key", ":hostname", ":name"} {
			path = strings.ReplaceAll(path, p, "x")
		}
		body := ""
		if r.input {
			body = "{}" // refused, so that nothing is changed
		}
		plain, slashed := l.call(r.method, path, body), l.call(r.method, path+"/", body)
		if plain.status != slashed.status || plain.header.Get("Location") != slashed.header.Get("Location") {
			t.Errorf("%s %s: %d, with a slash more %d", r.method, path, plain.status, slashed.status)
		}
		a, b := l.call("OPTIONS", path, ""), l.call("OPTIONS", path+"/", "")
		if a.status != 200 || b.status != 200 || a.header.Get("Allow") != b.header.Get("Allow") {
			t.Errorf("OPTIONS %s: %d %v, with a slash more %d %v", path, a.status, a.header, b.status, b.header)
		}
		if two := l.call(r.method, path+"//", body); two.status != http.StatusNotFound && path != apiConfigPath {
			t.Errorf("%s %s//: %d, want 404", r.method, path, two.status)
		}
	}
}

// TestEveryOtherMethodIs405 with the right Allow, also below ids of any character.
func TestEveryOtherMethodIs405(t *testing.T) {
	l := newLab(t)
	known := map[string][]string{}
	for _, r := range l.server.table() {
		known[r.path] = append(known[r.path], r.method)
	}
	for path, methods := range known {
		want := append(slices.Clone(methods), "OPTIONS")
		if slices.Contains(methods, "GET") {
			want = append(want, "HEAD")
		}
		slices.Sort(want)
		for _, p := range []string{":id", ":key", ":hostname", ":name", "*endpoint"} {
			path = strings.ReplaceAll(path, p, "a%2F..%20b")
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE"} {
			if slices.Contains(want, method) {
				continue
			}
			r := l.call(method, path, "")
			allow := strings.Split(r.header.Get("Allow"), ", ")
			slices.Sort(allow)
			if r.status != 405 || !slices.Equal(allow, want) {
				t.Errorf("%s %s: %d, Allow %v, want 405 and %v", method, path, r.status, allow, want)
			}
			if method != "HEAD" && !strings.HasPrefix(string(r.body), `{"code":405,"message":"`) {
				t.Errorf("%s %s: %s", method, path, r.body)
			}
		}
	}
}
