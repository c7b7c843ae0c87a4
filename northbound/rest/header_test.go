package rest

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
)

func TestAcceptAndContentType(t *testing.T) {
	for header, want := range map[string]bool{
		"": true, "*/*": true, "application/json": true, "application/*": true, "Application/JSON ; q=0.5": true,
		"text/html, application/json;q=0.1": true, "text/html,*/*;q=0.8": true, "text/plain": false, "application/xml": false,
		"application/json;q=0": false, "*/*, application/json;q=0": false, "*/*;q=0": false, "application/json;version=1": true,
	} {
		r := &http.Request{Header: http.Header{"Accept": {header}}}
		if got := acceptsJSON(r); got != want {
			t.Errorf("Accept %q: %v", header, got)
		}
	}
	for header, want := range map[string]bool{
		"": true, "application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true, "application/json; charset": true,
		"text/plain": false, "application/json+x": false, "application/merge-patch+json": false, "zzz": false,
	} {
		r := &http.Request{Header: http.Header{"Content-Type": {header}}}
		if got := sendsJSON(r); got != want {
			t.Errorf("Content-Type %q: %v", header, got)
		}
	}
}

func TestNumbersBecomeTextAsInJava(t *testing.T) {
	for in, want := range map[string]string{
		"5": "5", "-0": "0", "123456789012345678901234567890": "123456789012345678901234567890", "1.50": "1.5", "1e3": "1000.0",
		"1e7": "1.0E7", "12345678.9": "1.23456789E7", "0.001": "0.001", "1e-4": "1.0E-4", "0.0": "0.0", "-2.5e-5": "-2.5E-5",
	} {
		if got := numberText(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestWarningCantBreakTheHeader: what stands in a Warning may come from outside.
func TestWarningCantBreakTheHeader(t *testing.T) {
	w := &headerOnly{http.Header{}}
	c := gin.CreateTestContextOnly(w, gin.New())
	warn(c, "a\"b\r\nX: y ä")
	if got := w.h.Get("Warning"); got != `199 kvnet "a\"b\r\nX: y \u00e4"` {
		t.Errorf("Warning %s", got)
	}
}

type headerOnly struct{ h http.Header }

func (w *headerOnly) Header() http.Header         { return w.h }
func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerOnly) WriteHeader(int)             {}
