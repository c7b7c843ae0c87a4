package rest

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
)

// normalizePath makes the path of a request comparable to the routes: escapes of
// characters that need none are undone (RFC 3986, section 6.2.2.2), and one
// trailing slash is cut, because ONOS serves /network and /network/ alike. All
// other escapes stay, so that a slash within an id doesn't separate.
func normalizePath(r *http.Request) {
	if r.URL.RawPath == "" && isPlain(r.URL.Path) {
		return
	}
	raw := unescapeUnreserved(r.URL.EscapedPath())
	if len(raw) > 1 {
		raw = strings.TrimSuffix(raw, "/")
	}
	if path, err := url.PathUnescape(raw); err == nil {
		r.URL.Path, r.URL.RawPath = path, raw
	}
}

// isPlain tells whether a path is as it should be: nothing in it needs an escape,
// and it ends with no slash. Most are.
func isPlain(path string) bool {
	for i := range len(path) {
		if c := path[i]; c != '/' && c != ':' && !isUnreserved(c) {
			return false
		}
	}
	return !strings.HasSuffix(path, "/")
}

func unescapeUnreserved(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			if c := unhex(s[i+1])<<4 | unhex(s[i+2]); isUnreserved(c) {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// param is a path parameter, percent-decoded once.
func param(c *gin.Context, name string) (string, error) {
	s, err := url.PathUnescape(c.Param(name))
	switch {
	case err != nil:
		return "", badRequest("the path has an escape that is none")
	case !utf8.ValidString(s):
		return "", badRequest("the path is not valid UTF-8")
	case strings.IndexByte(s, 0) >= 0:
		return "", badRequest("the path has a NUL character")
	}
	return s, nil
}

// location is the URL of an object below this server's address as the client
// wrote it. Each segment is escaped as a whole.
func location(r *http.Request, collection string, segments ...string) string {
	var b strings.Builder
	if r.Host != "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		b.WriteString(scheme + "://" + r.Host)
	}
	b.WriteString(collection)
	for _, s := range segments {
		b.WriteString("/" + escapeSegment(s))
	}
	return b.String()
}

// escapeSegment escapes a path segment. Dots alone would be taken for steps
// within the path.
func escapeSegment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
