package rest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvnet/model"
	"kvnet/model/state"
)

// recorded is a request with the answer of the original.
type recorded struct {
	Name           string
	Setup          []step
	Preceding      []message
	Request        message
	Expect         expectation
	NeedsNodeState bool
}

// message is a request, or several steps.
type message struct {
	Method  string
	Path    string
	Headers map[string]string
	Body    *string
	Steps   []step
}

// step is an operation that the original's test bench did without REST.
type step struct {
	Op       string
	Network  json.RawMessage
	Router   json.RawMessage
	Fip      json.RawMessage
	Lb       json.RawMessage
	Sg       json.RawMessage
	Rule     json.RawMessage
	Node     json.RawMessage
	Hostname string
	State    model.NodeState
}

// recordedCases is the number of cases, so that none gets lost unnoticed.
const recordedCases = 344

// TestGoldenCases replays what was recorded from the original: every case, with
// what came before it on the same server.
func TestGoldenCases(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) != recordedCases {
		t.Fatalf("%d recorded cases, want %d: %v", len(files), recordedCases, err)
	}
	l := newLab(t)
	replayed := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if r.Request.Method == "" || r.Expect.Status == nil {
			t.Fatalf("%s has no request or no expected answer", file)
		}
		t.Run(r.Name, func(t *testing.T) {
			realStore(t)
			l.t = t
			l.replay(&r)
			replayed++
		})
	}
	if some := strings.Contains(flag.Lookup("test.run").Value.String(), "/"); replayed != recordedCases && !some {
		t.Errorf("%d cases were replayed to their end, want all %d", replayed, recordedCases)
	}
}

func (l *lab) replay(r *recorded) {
	l.t.Helper()
	for _, s := range r.Setup {
		l.do(s, r.NeedsNodeState)
	}
	for _, m := range r.Preceding {
		for _, s := range m.Steps {
			l.do(s, r.NeedsNodeState)
		}
		if m.Method != "" {
			l.send(m.Method, m.Path, m.Headers, m.Body)
		}
	}
	got := l.send(r.Request.Method, r.Request.Path, r.Request.Headers, r.Request.Body)
	if why := got.meets(&r.Expect, r.Request.Headers["Host"]); why != "" {
		l.t.Errorf("%s %s: %s", r.Request.Method, r.Request.Path, why)
	}
}

// do carries out a step of the test bench by the calls that kvnet has for it.
func (l *lab) do(s step, nodeStates bool) {
	l.t.Helper()
	switch s.Op {
	case "createNetwork":
		l.must(201, "POST", networksPath, string(s.Network))
	case "createRouter":
		l.must(201, "POST", networkingPath+"/router", string(s.Router))
	case "createFip":
		l.must(201, "POST", networkingPath+"/floating-ip", string(s.Fip))
	case "createLb":
		l.must(201, "POST", networkingPath+"/loadbalancer", string(s.Lb))
	case "createSg":
		l.must(201, "POST", networkingPath+"/security-group", string(s.Sg))
	case "createSgRule":
		l.addRule(s.Rule)
	case "createNode":
		l.must(201, "POST", nodesPath, fmt.Sprintf(`{"nodes":[%s]}`, s.Node))
	case "nodeState":
		if nodeStates {
			l.setNodeState(s.Hostname, s.State)
		}
	default:
		l.t.Fatalf("unknown operation %q", s.Op)
	}
}

func (l *lab) addRule(rule json.RawMessage) {
	l.t.Helper()
	var r struct{ SecurityGroupID string }
	if err := json.Unmarshal(rule, &r); err != nil {
		l.t.Fatal(err)
	}
	path := networkingPath + "/security-group/" + r.SecurityGroupID
	var group map[string]any
	if err := json.Unmarshal(l.must(200, "GET", path, "").body, &group); err != nil {
		l.t.Fatal(err)
	}
	rules, _ := group["rules"].([]any)
	group["rules"] = append(rules, rule)
	b, err := json.Marshal(group)
	if err != nil {
		l.t.Fatal(err)
	}
	l.must(200, "PUT", path, string(b))
}

// setNodeState puts a node's state into this server's state, as the leader's
// decision would come out of the store.
func (l *lab) setNodeState(host string, s model.NodeState) {
	l.t.Helper()
	db := l.db.Snapshot()
	n := db.Node(host)
	if n == nil {
		l.t.Fatalf("there is no node %q", host)
	}
	st := &model.NodeStatus{Hostname: host, Life: n.Created, State: s, InitRequest: n.InitRequest}
	if err := l.db.Apply(db.Revision(), []state.Event{{Kind: st.Kind(), Key: st.Key(), Object: st}}); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := l.db.Apply(l.db.Snapshot().Revision(), []state.Event{{Kind: st.Kind(), Key: st.Key()}}); err != nil {
			l.t.Error(err)
		}
	})
}

// eventually waits until f holds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
