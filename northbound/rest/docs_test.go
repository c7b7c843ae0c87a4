package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvnet/openapi"
)

// described is what these tests read of a description.
type described struct {
	Swagger     string
	BasePath    string
	Paths       map[string]map[string]*operation
	Definitions map[string]*schema
}

type operation struct {
	OperationID string
	Tags        []string
	Summary     string
	Security    *[]any
	Parameters  []struct {
		Name, In string
		Schema   *schema
	}
	Responses map[string]any
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Format     string
	ReadOnly   bool
	Example    any
	Items      *schema
	AllOf      []*schema
	Properties map[string]*schema
}

// descriptions are those that the server serves.
func descriptions(l *lab) []*described {
	l.t.Helper()
	var out []*described
	for _, d := range openapi.Descriptions() {
		r := l.send("GET", "/onos/v1/docs/apis/"+d.Key+"/swagger.json", nil, nil)
		var x described
		if err := json.Unmarshal(r.body, &x); r.status != 200 || r.header.Get("Content-Type") != jsonType || err != nil {
			l.t.Fatalf("description %s: %d, type %q, error %v", d.Key, r.status, r.header.Get("Content-Type"), err)
		}
		if x.Swagger != "2.0" {
			l.t.Errorf("description %s: version %q", d.Key, x.Swagger)
		}
		out = append(out, &x)
	}
	return out
}

func withAllCalls(c *Config) {
	c.Epochs, c.Adopter, c.Members, c.Cluster = &epochs{}, &adopter{}, fixedMembers{}, &keeper{}
}

var (
	parameter   = regexp.MustCompile(`[:*{]\w+}?`)
	withoutName = func(path string) string { return parameter.ReplaceAllString(path, "{}") }
)

// Each call of the server is described once, with the refusals that it gives, and
// nothing else is described.
func TestEachCallIsDescribedOnce(t *testing.T) {
	l := newLab(t, withAllCalls)
	found := map[string]*operation{}
	ids := map[string]bool{}
	for _, d := range descriptions(l) {
		for path, methods := range d.Paths {
			for method, op := range methods {
				call := strings.ToUpper(method) + " " + withoutName(strings.TrimSuffix(d.BasePath, "/")+path)
				if found[call] != nil {
					t.Errorf("%s is described twice", call)
				}
				found[call] = op
				if op.OperationID == "" || ids[op.OperationID] {
					t.Errorf("%s: the id %q is empty or taken", call, op.OperationID)
				}
				ids[op.OperationID] = true
				if op.Summary == "" || len(op.Tags) != 1 {
					t.Errorf("%s has no summary, or not one tag: %v", call, op.Tags)
				}
			}
		}
	}
	for _, r := range l.server.table() {
		call := r.method + " " + withoutName(r.path)
		op := found[call]
		if op == nil {
			t.Errorf("%s is not described", call)
			continue
		}
		delete(found, call)
		body := slices.ContainsFunc(op.Parameters, func(p struct {
			Name, In string
			Schema   *schema
		}) bool {
			return p.In == "body"
		})
		for _, x := range []struct {
			what      string
			got, want bool
		}{
			{"public", op.Security != nil && len(*op.Security) == 0, r.public},
			{"has a body", body, r.input},
			{"401", op.Responses["401"] != nil, !r.public},
			{"403", op.Responses["403"] != nil, r.writes()},
			{"406", op.Responses["406"] != nil, r.output || r.path == ownPath+"/events"},
			{"413", op.Responses["413"] != nil, r.writes()},
			{"415", op.Responses["415"] != nil, r.input || r.typed},
			{"400", op.Responses["400"] != nil || !r.input, true},
		} {
			if x.got != x.want {
				t.Errorf("%s: %q is described as %v, it is %v", call, x.what, x.got, x.want)
			}
		}
		if n := len(parameter.FindAllString(r.path, -1)); n != count(op, "path") {
			t.Errorf("%s has %d parameters, %d are described", call, n, count(op, "path"))
		}
	}
	for call := range found {
		t.Errorf("%s is described, and there is no such call", call)
	}
}

func count(op *operation, in string) (n int) {
	for _, p := range op.Parameters {
		if p.In == in {
			n++
		}
	}
	return n
}

// The bodies that the page fills in for a newcomer are accepted.
func TestDescribedExamplesAreAccepted(t *testing.T) {
	l := newLab(t)
	for _, d := range descriptions(l) {
		for path, methods := range d.Paths {
			op := methods["post"]
			if op == nil || op.Responses["201"] == nil {
				continue
			}
			for _, p := range op.Parameters {
				if p.In != "body" {
					continue
				}
				body, err := json.Marshal(d.example(p.Schema))
				if err != nil {
					t.Fatal(err)
				}
				r := l.must(http.StatusCreated, "POST", strings.TrimSuffix(d.BasePath, "/")+path, string(body))
				if w := r.header.Values("Warning"); len(w) > 0 {
					t.Errorf("POST %s of the example %s: %v", path, body, w)
				}
			}
		}
	}
}

// example is the body that Swagger UI shows for a model.
func (d *described) example(s *schema) any {
	switch {
	case s.Ref != "":
		return d.example(d.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")])
	case s.Example != nil:
		return s.Example
	case len(s.AllOf) == 1:
		return d.example(s.AllOf[0])
	case s.Type == "array":
		return []any{d.example(s.Items)}
	case s.Type == "object":
		out := map[string]any{}
		for name, p := range s.Properties {
			if !p.ReadOnly {
				out[name] = d.example(p)
			}
		}
		return out
	}
	return fmt.Sprintf("no example for a %s", s.Type)
}

// What a tag of an edge type checks, its description says.
func TestFormatsAreThoseThatAreChecked(t *testing.T) {
	formats := map[string]string{
		tagAddress: "ip", tagHost: "ip", tagPrefix: "cidr", tagCIDR: "cidr", tagMAC: "mac", tagDevice: "device",
	}
	var look func(x reflect.Type)
	look = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice:
			look(x.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		for i := range x.NumField() {
			f := x.Field(i)
			for _, tag := range strings.Split(f.Tag.Get("validate"), ",") {
				if want := formats[tag]; want != "" && f.Tag.Get("format") != want {
					t.Errorf("%s.%s is checked to be a %s, and its format is %q, not %q", x.Name(), f.Name, tag, f.Tag.Get("format"), want)
				}
				if tag == tagKey && f.Tag.Get("maxLength") != fmt.Sprint(maxKey) {
					t.Errorf("%s.%s has %q for its maximal length, not %d", x.Name(), f.Name, f.Tag.Get("maxLength"), maxKey)
				}
			}
			look(f.Type)
		}
	}
	for _, e := range []any{
		networkJSON{}, nodesJSON{}, routerJSON{}, floatingIPJSON{}, loadBalancerJSON{}, securityGroupJSON{}, portJSON{},
		apiConfigJSON{},
	} {
		look(reflect.TypeOf(e))
	}
}

// The page is where ONOS has it, needs no credentials, and may load nothing from
// elsewhere.
func TestThePageIsServed(t *testing.T) {
	l := newLab(t)
	if r := l.send("GET", "/onos/v1/docs", nil, nil); r.status != http.StatusTemporaryRedirect || r.header.Get("Location") != "docs/" {
		t.Errorf("without the slash: %d to %q, want 307 to docs/", r.status, r.header.Get("Location"))
	}
	page := l.send("GET", "/onos/v1/docs/", nil, nil)
	policy := page.header.Get("Content-Security-Policy")
	if page.status != http.StatusOK || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") {
		t.Fatalf("the page: %d, policy %q", page.status, policy)
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page.body), -1)
	if len(links) < 6 {
		t.Errorf("the page has only %d links", len(links))
	}
	for _, m := range links {
		if strings.Contains(m[1], "//") || strings.HasPrefix(m[1], "/") {
			t.Errorf("the page refers to %s, which is not beside it", m[1])
			continue
		}
		r := l.send("GET", "/onos/v1/docs/"+m[1], nil, nil)
		if r.status != http.StatusOK || len(r.body) == 0 {
			t.Errorf("%s, which the page refers to: %d with %d bytes", m[1], r.status, len(r.body))
		}
		if tag := r.header.Get("ETag"); tag != "" {
			if again := l.send("GET", "/onos/v1/docs/"+m[1], map[string]string{"If-None-Match": tag}, nil); again.status != http.StatusNotModified {
				t.Errorf("%s once more: %d, want 304", m[1], again.status)
			}
		}
	}
	for _, absent := range []string{"/onos/v1/docs/swagger-ui-bundle.js.map", "/onos/v1/docs/..%2Fdoc.go", "/onos/v1/docs/apis/onos/other/swagger.json"} {
		if r := l.send("GET", absent, nil, nil); r.status != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", absent, r.status)
		}
	}
	const titles = `{"apis":["KubeVirt Networking API","KubeVirt Node API","kvnet API"]}`
	if r := l.send("GET", "/onos/v1/docs/apis", nil, nil); string(r.body) != titles {
		t.Errorf("the titles: %s", r.body)
	}
}
