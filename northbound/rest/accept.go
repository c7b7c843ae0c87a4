package rest

import (
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const jsonType = "application/json"

// sendsJSON tells whether the body of a request may be read as JSON: its type is
// JSON or not said.
func sendsJSON(r *http.Request) bool {
	h := r.Header.Get("Content-Type")
	if h == "" {
		return true
	}
	t, _, err := mime.ParseMediaType(h)
	return (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && t == jsonType
}

// acceptsJSON tells whether the client takes JSON as an answer.
func acceptsJSON(r *http.Request) bool { return accepts(r, jsonType, "application/*") }

// accepts tells whether the client takes a media type as an answer. The most
// specific range that covers it decides (RFC 9110, section 12.5.1).
func accepts(r *http.Request, exact, group string) bool {
	values := r.Header.Values("Accept")
	if strings.TrimSpace(strings.Join(values, "")) == "" {
		return true
	}
	best, accepted := -1, false
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			t, params, _ := strings.Cut(part, ";")
			var specific int
			switch strings.ToLower(strings.TrimSpace(t)) {
			case exact:
				specific = 2
			case group:
				specific = 1
			case "*/*", "*":
				specific = 0
			default:
				continue
			}
			if ok := quality(params) > 0; specific > best {
				best, accepted = specific, ok
			} else if specific == best {
				accepted = accepted || ok
			}
		}
	}
	return accepted
}

// quality is the weight among the parameters of a media range; 1 if there is
// none.
func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return 1
		}
		return q
	}
	return 1
}
