package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
)

// expectation is what a recorded case must be answered with.
type expectation struct {
	Status      any                        `json:"status"`
	ContentType string                     `json:"contentType"`
	Body        json.RawMessage            `json:"body"`
	BodyPattern any                        `json:"bodyPattern"`
	Headers     map[string]json.RawMessage `json:"headers"`
	Or          []expectation              `json:"or"`
}

// reply is an answer as it came over the wire.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// meets tells why the reply isn't what is expected; "" if it is.
func (r *reply) meets(e *expectation, host string) string {
	why := r.meetsOne(e, host)
	for i := range e.Or {
		if why == "" {
			break
		}
		if r.meetsOne(&e.Or[i], host) == "" {
			why = ""
		}
	}
	return why
}

func (r *reply) meetsOne(e *expectation, host string) string {
	if !statusIn(e.Status, r.status) {
		return fmt.Sprintf("status %d, want %v (body %s)", r.status, e.Status, r.body)
	}
	if ct := r.header.Get("Content-Type"); e.ContentType != "" && ct != e.ContentType && ct != e.ContentType+"; charset=utf-8" {
		return fmt.Sprintf("content type %q, want %q", ct, e.ContentType)
	}
	switch {
	case string(e.Body) == `""`:
		if len(r.body) != 0 {
			return fmt.Sprintf("body %s, want none", r.body)
		}
	case e.Body != nil:
		if !equalJSON(parseJSON(r.body), parseJSON(e.Body)) {
			return fmt.Sprintf("body %s, want %s", r.body, e.Body)
		}
	case e.BodyPattern != nil:
		if !fits(e.BodyPattern, parseJSON(r.body)) {
			want, _ := json.Marshal(e.BodyPattern)
			return fmt.Sprintf("body %s, want %s", r.body, want)
		}
	}
	for name, want := range e.Headers {
		if why := headerFits(name, r.header.Get(name), want, host); why != "" {
			return why
		}
	}
	return ""
}

func statusIn(want any, got int) bool {
	if list, ok := want.([]any); ok {
		for _, x := range list {
			if statusIn(x, got) {
				return true
			}
		}
		return false
	}
	return want == float64(got)
}

// notJSON stands for a body that is no JSON.
type notJSON struct{ text string }

func parseJSON(b []byte) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&v); err != nil || dec.More() {
		return notJSON{string(b)}
	}
	return v
}

// equalJSON compares values; arrays are compared as sets with repetition.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equalJSON(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && matchAll(b, a, equalJSON) != nil
	}
	return reflect.DeepEqual(a, b)
}

// matchAll assigns each wanted element another one of have; nil if it can't. It
// returns what is left of have.
func matchAll(have, want []any, equal func(have, want any) bool) []any {
	left := append([]any{}, have...)
	for _, w := range want {
		found := false
		for i, h := range left {
			if equal(h, w) {
				left, found = append(left[:i:i], left[i+1:]...), true
				break
			}
		}
		if !found {
			return nil
		}
	}
	return left
}

var tests = map[string]bool{"text": true, "number": true, "contains": true, "matches": true, "excludes": true,
	"has": true, "oneOf": true, "set": true, "maybe": true}

// fits tells whether the value passes a pattern.
func fits(pattern, v any) bool {
	p, ok := pattern.(map[string]any)
	if !ok {
		if list, ok := pattern.([]any); ok {
			have, ok := v.([]any)
			return ok && len(have) == len(list) && matchAll(have, list, func(h, w any) bool { return fits(w, h) }) != nil
		}
		return equalJSON(pattern, v)
	}
	isTest := len(p) > 0
	for k := range p {
		isTest = isTest && tests[k]
	}
	if isTest {
		return passes(p, v)
	}
	o, ok := v.(map[string]any)
	if !ok || len(o) != len(p) {
		return false
	}
	for k, w := range p {
		if x, ok := o[k]; !ok || !fits(w, x) {
			return false
		}
	}
	return true
}

func passes(p map[string]any, v any) bool {
	text, isText := v.(string)
	if !isText {
		b, _ := json.Marshal(v)
		text = string(b)
	}
	for k, arg := range p {
		ok := false
		switch k {
		case "text":
			ok = isText && strings.TrimSpace(text) != ""
		case "number":
			_, ok = v.(float64)
		case "contains":
			ok = strings.Contains(text, arg.(string))
		case "matches":
			ok = regexp.MustCompile(arg.(string)).MatchString(text)
		case "excludes":
			ok = !regexp.MustCompile(arg.(string)).MatchString(text)
		case "has":
			o, isObject := v.(map[string]any)
			ok = isObject
			for name, w := range arg.(map[string]any) {
				x, there := o[name]
				ok = ok && there && fits(w, x)
			}
		case "oneOf":
			for _, w := range arg.([]any) {
				ok = ok || fits(w, v)
			}
		case "set":
			have, isList := v.([]any)
			equal := func(h, w any) bool { return fits(w, h) }
			left := matchAll(have, arg.([]any), equal)
			maybe, _ := p["maybe"].([]any)
			ok = isList && left != nil && matchAll(maybe, left, fits) != nil
		case "maybe":
			ok = p["set"] != nil
		}
		if !ok {
			return false
		}
	}
	return true
}

func headerFits(name, got string, want json.RawMessage, host string) string {
	var w struct {
		Equals    *string
		Includes  []string
		Path      []string
		PathOneOf [][]string
	}
	if err := json.Unmarshal(want, &w); err != nil {
		return err.Error()
	}
	if w.Equals != nil && got != *w.Equals {
		return fmt.Sprintf("header %s %q, want %q", name, got, *w.Equals)
	}
	have := map[string]bool{}
	for x := range strings.SplitSeq(got, ",") {
		have[strings.TrimSpace(x)] = true
	}
	for _, x := range w.Includes {
		if !have[x] {
			return fmt.Sprintf("header %s %q lacks %s", name, got, x)
		}
	}
	if w.Path != nil {
		w.PathOneOf = append(w.PathOneOf, w.Path)
	}
	for _, p := range w.PathOneOf {
		if locationFits(got, p, host) {
			return ""
		}
	}
	if w.PathOneOf != nil {
		return fmt.Sprintf("header %s %q, want a URL with one of the paths %q", name, got, w.PathOneOf)
	}
	return ""
}

func locationFits(got string, path []string, host string) bool {
	u, err := url.Parse(got)
	if err != nil || u.Host != "" && u.Host != host || !strings.HasPrefix(u.EscapedPath(), "/") {
		return false
	}
	segments := strings.Split(u.EscapedPath()[1:], "/")
	for i := range segments {
		if segments[i], err = url.PathUnescape(segments[i]); err != nil {
			return false
		}
	}
	return u.RawQuery == "" && u.Fragment == "" && reflect.DeepEqual(segments, path)
}
