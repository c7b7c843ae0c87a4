package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// apiError is an answer that refuses a request. Every refusal has the shape that
// ONOS gives to errors: {"code":N,"message":"…"}.
type apiError struct {
	code    int
	message string
	// retryAfter is the number of seconds after which trying again makes
	// sense; 0: not said.
	retryAfter int
	// expected: nothing is wrong, so it is not logged.
	expected bool
	// cause is what went wrong inside. It is logged, not shown.
	cause error
}

func (e *apiError) Error() string { return e.message }
func (e *apiError) Unwrap() error { return e.cause }

func refuse(code int, format string, args ...any) *apiError {
	return &apiError{code: code, message: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *apiError {
	return refuse(http.StatusBadRequest, format, args...)
}

// maxFaults bounds the number of sentences in one answer.
const maxFaults = 8

// faults are sentences about what is wrong with a body. Each names the field by
// its JSON path.
type faults []string

func (f *faults) add(format string, args ...any) {
	*f = append(*f, fmt.Sprintf(format, args...))
}

// err gives the answer for the faults, nil if there are none.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	var b strings.Builder
	for i, x := range f {
		if i == maxFaults {
			fmt.Fprintf(&b, "; and %d more", len(f)-maxFaults)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(x)
	}
	return badRequest("%s", b.String())
}

// shown is a value from outside as it appears in a sentence: never longer than
// what helps.
func shown(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && s[cut]&0xc0 == 0x80 { // not within a character
		cut--
	}
	return s[:cut] + "…"
}

// asAPIError is the answer for any error that a handler returns.
func asAPIError(err error) *apiError {
	var a *apiError
	if errors.As(err, &a) {
		return a
	}
	return &apiError{code: http.StatusInternalServerError, message: "an error inside kvnet; its log says more", cause: err}
}
