package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server with one router for all keys. What it does is given by its fields.
type fake struct {
	mu    sync.Mutex
	value string
	// old makes plain reads answer the value before the last write.
	old    bool
	before string
	// fault is the answer to the next write, which is carried out if lost is set.
	fault error
	lost  bool
}

func (f *fake) Do(_ context.Context, method, path string, body any) (int, []byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method == http.MethodGet && strings.HasSuffix(path, "/router?consistent=true") {
		list := []map[string]any{}
		if f.value != "" {
			list = append(list, map[string]any{"name": "r", "description": f.value})
		}
		answer, err := json.Marshal(map[string]any{"routers": list})
		return http.StatusOK, answer, err
	}
	if method == http.MethodGet {
		value := f.value
		if f.old && !strings.Contains(path, "consistent=true") {
			value = f.before
		}
		if value == "" {
			return http.StatusNotFound, nil, nil
		}
		answer, err := json.Marshal(map[string]any{"description": value})
		return http.StatusOK, answer, err
	}
	err := f.fault
	f.fault = nil
	if err != nil && !f.lost {
		return 0, nil, err
	}
	status := f.write(method, body)
	if err != nil {
		return 0, nil, err
	}
	return status, []byte("it already exists"), nil
}

func (f *fake) write(method string, body any) int {
	switch create := method == http.MethodPost; {
	case create && f.value != "":
		return http.StatusConflict
	case !create && f.value == "":
		return http.StatusNotFound
	}
	f.before = f.value
	if method == http.MethodDelete {
		f.value = ""
		return http.StatusNoContent
	}
	f.value = body.(map[string]any)["description"].(string)
	if method == http.MethodPost {
		return http.StatusCreated
	}
	return http.StatusOK
}

// check holds what has been recorded against the model.
func check(t *testing.T, h *History, consistent bool) Result {
	t.Helper()
	r, err := Check(Of(h.Operations(), consistent), time.Minute, "")
	if err != nil || len(r.Undecided) > 0 {
		t.Fatalf("%s: %v", r, err)
	}
	return r
}

func do(t *testing.T, h *History, s Server, inputs ...Input) {
	t.Helper()
	for _, in := range inputs {
		in.Key = "r"
		if _, err := (Client{History: h}).Do(t.Context(), s, in); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerThatShowsOldThingsIsFound(t *testing.T) {
	h, s := NewHistory(), &fake{old: true}
	do(t, h, s, Input{Kind: Create, Value: "a"}, Input{Kind: Update, Value: "b"}, Input{Kind: Read}, Input{Kind: Read, Consistent: true})
	if r := check(t, h, true); len(r.Violations) != 0 {
		t.Errorf("consistent reads: %s", r)
	}
	if r := check(t, h, false); len(r.Violations) != 1 {
		t.Errorf("plain reads: %s", r)
	}
}

func TestManyClientsOfOneServerFit(t *testing.T) {
	h, s := NewHistory(), &fake{}
	var wg sync.WaitGroup
	for n := range 5 {
		wg.Go(func() {
			c := Client{Number: n, History: h}
			for i := range 200 {
				in := Input{Kind: Kind(i % 4), Key: "k", Consistent: i%8 == 0}
				if in.Kind == Create || in.Kind == Update {
					in.Value = fmt.Sprint(n, "-", i)
				}
				if _, err := c.Do(t.Context(), s, in); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, consistent := range []bool{true, false} {
		if r := check(t, h, consistent); len(r.Violations) != 0 || r.Operations < 750 {
			t.Errorf("consistent=%v: %s", consistent, r)
		}
	}
}

// Whatever becomes of a write without an answer is right, also later or never; one
// that wasn't sent must not be carried out.
func TestWritesWithoutAnswer(t *testing.T) {
	timeout := &url.Error{Op: "Put", Err: context.DeadlineExceeded}
	dial := &url.Error{Op: "Put", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	update, remove := Input{Kind: Update, Value: "b"}, Input{Kind: Delete}
	tests := map[string]struct {
		write      Input
		fault      error
		carriedOut bool
		open       int
		violations int
	}{
		"update, timeout, carried out":      {update, timeout, true, 0, 0},  // it has been read
		"update, timeout, not carried out":  {update, timeout, false, 0, 0}, // nobody has seen it
		"update, not sent":                  {update, dial, false, 0, 0},
		"update, not sent, but carried out": {update, dial, true, 0, 1},
		"delete, timeout, carried out":      {remove, timeout, true, 1, 0},
		"delete, timeout, not carried out":  {remove, timeout, false, 1, 0},
		"delete, not sent, but carried out": {remove, dial, true, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, s := NewHistory(), &fake{}
			do(t, h, s, Input{Kind: Create, Value: "a"})
			s.fault, s.lost = test.fault, test.carriedOut
			do(t, h, s, test.write, Input{Kind: Read, Consistent: true})
			if r := check(t, h, true); r.Open != test.open || len(r.Violations) != test.violations {
				t.Errorf("%s; want %d open, %d violations", r, test.open, test.violations)
			}
		})
	}
}

// A server that has acknowledged or shown something must not forget it.
func TestAServerThatForgetsIsFound(t *testing.T) {
	timeout := &url.Error{Op: "Put", Err: context.DeadlineExceeded}
	read := Input{Kind: Read, Consistent: true}
	forget := map[string]func(h *History, s *fake){
		"an acknowledged update": func(h *History, s *fake) {
			do(t, h, s, Input{Kind: Update, Value: "b"})
			s.value = "a"
			do(t, h, s, read)
		},
		"an acknowledged creation": func(h *History, s *fake) {
			s.value = ""
			do(t, h, s, read)
		},
		"an acknowledged deletion": func(h *History, s *fake) {
			do(t, h, s, Input{Kind: Delete})
			s.value = "a"
			do(t, h, s, read)
		},
		"an update without an answer that it has shown": func(h *History, s *fake) {
			s.fault, s.lost = timeout, true
			do(t, h, s, Input{Kind: Update, Value: "b"}, read)
			s.value = "a"
			do(t, h, s, read)
		},
		"all, as the list in the end shows": func(h *History, s *fake) {
			s.value = ""
			if err := (Client{History: h}).ReadAll(t.Context(), s, []string{"r"}); err != nil {
				t.Fatal(err)
			}
		},
	}
	for what, f := range forget {
		t.Run(what, func(t *testing.T) {
			h, s := NewHistory(), &fake{}
			do(t, h, s, Input{Kind: Create, Value: "a"}, read)
			if r := check(t, h, true); len(r.Violations) != 0 {
				t.Fatalf("before: %s", r)
			}
			f(h, s)
			if r := check(t, h, true); len(r.Violations) != 1 {
				t.Errorf("not found: %s", r)
			}
		})
	}
}

func TestTheListInTheEndReadsEachKey(t *testing.T) {
	h, s := NewHistory(), &fake{}
	do(t, h, s, Input{Kind: Create, Value: "a"})
	if err := (Client{History: h}).ReadAll(t.Context(), s, []string{"r", "other"}); err != nil {
		t.Fatal(err)
	}
	if r := check(t, h, true); r.Keys != 2 || r.Operations != 3 || len(r.Violations) != 0 {
		t.Errorf("%s", r)
	}
}

func TestAnswersSayWhatTheySay(t *testing.T) {
	tests := []struct {
		kind   Kind
		status int
		answer string
		want   Outcome
		fails  bool
	}{
		{Create, 503, "whether the write was stored is not known", Unknown, false},
		{Update, 500, "", Unknown, false},
		{Create, 409, `"r" already exists`, Refused, false},
		{Create, 409, "somebody else changed the same objects", Void, false},
		{Update, 409, "somebody else changed the same objects", Void, false},
		{Update, 404, "", Refused, false},
		{Delete, 404, "", Refused, false},
		{Delete, 204, "", Done, false},
		{Create, 404, "", Unknown, true},
		{Update, 400, "", Unknown, true},
		{Read, 200, "{}", Void, true},
		{Read, 503, "", Unknown, false},
	}
	for _, test := range tests {
		out, err := learn(Input{Kind: test.kind}, test.status, []byte(test.answer), nil)
		if out.Outcome != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %d %s: %v, %v; want %v, error: %v", test.kind, test.status, test.answer, out.Outcome, err, test.want, test.fails)
		}
	}
}

// A read without an answer says nothing, and doesn't stay open.
func TestReadsWithoutAnswerAreLeftOut(t *testing.T) {
	h := NewHistory()
	h.End(h.Begin(0, Input{Kind: Read, Key: "r"}), Output{})
	if n := len(h.Operations()); n != 0 {
		t.Errorf("%d operations", n)
	}
}
