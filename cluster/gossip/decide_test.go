package gossip

import (
	"errors"
	"slices"
	"testing"
)

func sm(names ...string) (out []StoreMember) {
	for _, n := range names {
		out = append(out, StoreMember{n, "http://" + n + ":2380"})
	}
	return out
}

func TestDecide(t *testing.T) {
	plan := func(id string, names ...string) *Plan { return &Plan{ClusterID: id, Members: sm(names...)} }
	says := func(name string, p *Plan) answer {
		return answer{Self: sm(name)[0], Expect: 3, Plan: p, Sees: []string{"a", "b", "c"}}
	}
	tests := map[string]struct {
		rec     Record
		b, c    answer
		propose string // cluster id; "new" for a fresh one, empty: none
		giveUp  bool
		stale   []string // holders
		wait    bool
	}{
		"nobody has a plan":   {Record{}, says("b", nil), says("c", nil), "new", false, nil, false},
		"the own plan":        {Record{Plan: plan("p", "a", "b", "c")}, says("b", nil), says("c", plan("p", "a", "b", "c")), "p", false, nil, false},
		"the own plan's past": {Record{Plan: plan("p", "a", "b", "d")}, says("b", nil), says("c", nil), "", true, nil, false},
		"a forgotten plan":    {Record{}, says("b", plan("p", "a", "b", "c")), says("c", nil), "p", false, nil, false},
		"a withdrawn plan":    {Record{Withdrawn: []string{"p"}}, says("b", plan("p", "a", "b", "c")), says("c", nil), "new", false, []string{"b"}, false},
		"withdrawn for others": {Record{Withdrawn: []string{"p"}}, says("b", plan("p", "a", "b", "d")), says("c", nil),
			"new", false, []string{"b"}, false},
		"two forgotten plans": {Record{}, says("b", plan("p", "a", "b", "c")), says("c", plan("q", "a", "b", "c")), "p", false, []string{"c"}, false},
		"a forgotten plan beside the own": {Record{Plan: plan("p", "a", "b", "c")}, says("b", plan("q", "a", "b", "c")), says("c", nil),
			"p", false, []string{"b"}, false},
		"a forgotten plan for others": {Record{}, says("b", plan("p", "a", "b", "d")), says("c", nil), "", false, nil, false},
		"another's plan":              {Record{}, says("b", plan("p", "b", "c", "d")), says("c", nil), "", false, nil, true},
		"the promise to another":      {Record{Plan: plan("p", "A", "a", "b")}, says("b", nil), says("c", nil), "", false, nil, true},
		"another view": {Record{}, answer{Self: sm("b")[0], Expect: 3, Sees: []string{"a", "b", "d"}}, says("c", nil),
			"", false, nil, true},
		"another number": {Record{}, answer{Self: sm("b")[0], Expect: 5, Sees: []string{"a", "b", "c"}}, says("c", nil), "", false, nil, false},
		"one peer URL": {Record{}, answer{Self: StoreMember{"b", "http://a:2380"}, Expect: 3, Sees: []string{"a", "b", "c"}}, says("c", nil),
			"", false, nil, false},
		"committed": {Record{}, answer{Self: sm("b")[0], Expect: 3, Plan: plan("p", "a", "b", "c"), Committed: true, Sees: []string{"a", "b", "c"}},
			says("c", nil), "", false, nil, true},
	}
	for name, tt := range tests {
		d, err := decide(sm("a")[0], 3, tt.rec, []answer{tt.b, tt.c})
		w := waiting("")
		if wait := errors.As(err, &w); wait != tt.wait {
			t.Errorf("%s: %v", name, err)
		}
		got := ""
		if d.propose != nil {
			got = d.propose.ClusterID
		}
		if got != tt.propose || d.giveUp != tt.giveUp || len(d.stale) != len(tt.stale) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		for _, s := range tt.stale {
			if d.stale[s] == "" {
				t.Errorf("%s: the plan of %s stays", name, s)
			}
		}
		if d.propose == nil && !d.giveUp && err == nil {
			t.Errorf("%s: nothing, and no reason", name)
		}
	}
}

func TestPromise(t *testing.T) {
	p := &Plan{ClusterID: "p", Members: sm("a", "b")}
	q := &Plan{ClusterID: "q", Members: sm("a", "b")}
	tests := map[string]struct {
		rec    Record
		from   string
		expect int
		plan   *Plan
		ok     bool
	}{
		"first":         {Record{}, "a", 2, p, true},
		"again":         {Record{Plan: p}, "a", 2, p, true},
		"committed":     {Record{Plan: p, Committed: true}, "a", 2, p, true},
		"another":       {Record{Plan: q}, "a", 2, p, false},
		"same id":       {Record{Plan: &Plan{ClusterID: "p", Members: sm("b", "c")}}, "a", 2, p, false},
		"of another":    {Record{}, "c", 2, p, false},
		"other number":  {Record{}, "a", 3, p, false},
		"without me":    {Record{}, "a", 2, &Plan{ClusterID: "p", Members: sm("a", "c")}, false},
		"other URL":     {Record{}, "a", 2, &Plan{ClusterID: "p", Members: []StoreMember{sm("a")[0], {"b", "http://b:1"}}}, false},
		"not sorted":    {Record{}, "b", 2, &Plan{ClusterID: "p", Members: sm("b", "a")}, false},
		"no cluster id": {Record{}, "a", 2, &Plan{Members: sm("a", "b")}, false},
		"no members":    {Record{}, "a", 0, &Plan{ClusterID: "p"}, false},
	}
	for name, tt := range tests {
		if err := promise(sm("b")[0], tt.expect, tt.rec, tt.from, tt.plan); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithdrawnBounded(t *testing.T) {
	var r Record
	for range maxWithdrawn + 5 {
		r.Plan = &Plan{ClusterID: "p"}
		r = r.withdraw()
	}
	r.Plan = &Plan{ClusterID: "last"}
	if r = r.withdraw(); r.Plan != nil || len(r.Withdrawn) != maxWithdrawn || !slices.Contains(r.Withdrawn, "last") {
		t.Errorf("%d are remembered", len(r.Withdrawn))
	}
}
