package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"kvnet/model"
	"kvnet/model/state"
)

// seeds adds the fixtures of an entity, and what breaks decoders.
func seeds(f *testing.F, entity, format string) {
	f.Helper()
	files, err := filepath.Glob("testdata/fixtures/" + entity + "-*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no fixtures of %s: %v", entity, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(fmt.Appendf(nil, format, b))
	}
	for _, s := range []string{"", "null", "[]", "{", `{"a":1}{`, "\xef\xbb\xbf{}", "{\"name\":\"\xff\"}", `{"name":"\u0000"}`,
		`{"name":"\ud800"}`, `{"mtu":1e999,"portNumber":-0}`, `{"nodes":[null,[],{}]}`, `{"external":[[]],"peerRouter":[]}`} {
		f.Add([]byte(s))
	}
}

// roundTrip checks the law of all codecs: any bytes are read or refused, and what
// is read, written and read again is the same.
func roundTrip(t *testing.T, body []byte, decode func([]byte) (object, error), encode func(state.Snapshot, model.Object) any) {
	t.Helper()
	first, err := decode(body)
	if err != nil {
		if e := asAPIError(err); e.code != 400 || e.message == "" {
			t.Fatalf("refused with %d %q", e.code, e.message)
		}
		return
	}
	was := first.apply(nil)
	db := state.New()
	if err := db.Replace(1, []model.Object{was}); err != nil {
		t.Fatal(err)
	}
	written, err := marshal(encode(db.Snapshot(), was))
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	second, err := decode(written)
	if err != nil {
		t.Fatalf("own output %s is refused: %v", written, err)
	}
	if is := second.apply(nil); !reflect.DeepEqual(was, is) {
		t.Fatalf("was %+v, is %+v after %s", was, is, written)
	}
}

func fuzzAdded(f *testing.F, kind model.Kind, entity string) {
	for _, r := range added {
		if r.kind == kind {
			seeds(f, entity, "%s")
			f.Fuzz(func(t *testing.T, body []byte) { roundTrip(t, body, r.decode, encodeObject) })
			return
		}
	}
	f.Fatalf("no resource for %s", kind)
}

func FuzzRouter(f *testing.F)        { fuzzAdded(f, model.KindRouter, "router") }
func FuzzFloatingIP(f *testing.F)    { fuzzAdded(f, model.KindFloatingIP, "floatingip") }
func FuzzLoadBalancer(f *testing.F)  { fuzzAdded(f, model.KindLoadBalancer, "loadbalancer") }
func FuzzSecurityGroup(f *testing.F) { fuzzAdded(f, model.KindSecurityGroup, "securitygroup") }
func FuzzPort(f *testing.F)          { fuzzAdded(f, model.KindPort, "port") }

func FuzzNetwork(f *testing.F) {
	seeds(f, "network", "%s")
	f.Fuzz(func(t *testing.T, body []byte) {
		roundTrip(t, body, decodeObject[networkJSON], func(_ state.Snapshot, o model.Object) any {
			return encodeNetwork(o.(*model.Network))
		})
	})
}

func FuzzAPIConfig(f *testing.F) {
	seeds(f, "apiconfig", "%s")
	f.Fuzz(func(t *testing.T, body []byte) {
		roundTrip(t, body, decodeObject[apiConfigJSON], func(_ state.Snapshot, o model.Object) any {
			return withSecrets(o.(*model.APIConfig))
		})
	})
}

func FuzzNodes(f *testing.F) {
	seeds(f, "node", `{"nodes":[%s]}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := decodeEdge[nodesJSON](body)
		if err != nil {
			if e := asAPIError(err); e.code != 400 || e.message == "" {
				t.Fatalf("refused with %d %q", e.code, e.message)
			}
			return
		}
		for i := range *first.Nodes {
			was := (*first.Nodes)[i].model()
			written, err := marshal(map[string]any{"nodes": []any{encodeNode(state.New().Snapshot(), was)}})
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			second, err := decodeEdge[nodesJSON](written)
			if err != nil {
				t.Fatalf("own output %s is refused: %v", written, err)
			}
			if is := (*second.Nodes)[0].model(); !reflect.DeepEqual(was, is) {
				t.Fatalf("was %+v, is %+v after %s", was, is, written)
			}
		}
	})
}

// FuzzPath checks that any id leads through Location and the routes back to
// itself, and that any path at all is answered without a failure.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "a%2Fb", "%zz", "..", ".", "%2e%2e", "a?b#c", "%00", "%ff", "ä", "a b", "a;b", "exist", "a/", "\xff", "//", "+"} {
		f.Add(s)
	}
	h := newBareServer(f, &faultyStore{}).handler
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: path}
		if p, err := url.PathUnescape(path); err == nil {
			r.URL = &url.URL{Path: p, RawPath: path}
		}
		r.Header.Set("Authorization", adminAuth)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	f.Fuzz(func(t *testing.T, s string) {
		if w := get("/" + s); w.Code >= 500 {
			t.Fatalf("GET /%q: %d %s", s, w.Code, w.Body)
		}
		w := get(location(&http.Request{}, mm5Path+"/state/mer", s))
		switch {
		case s == "":
		case !utf8.ValidString(s) || strings.Contains(s, "\x00"):
			if w.Code != http.StatusBadRequest {
				t.Fatalf("id %q: %d %s", s, w.Code, w.Body)
			}
		default:
			var got struct{ NodeName string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != http.StatusOK || err != nil || got.NodeName != s {
				t.Fatalf("id %q: %d %s", s, w.Code, w.Body)
			}
		}
	})
}
