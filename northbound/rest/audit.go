package rest

import (
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"
)

// auditor writes who has tried to change what, and what became of it: one line
// for each call that changes something or would have. Bodies and credentials are
// never in it; what comes from clients is cut and has no control characters.
type auditor struct {
	log *slog.Logger
	// strangers bounds the lines about those who have not signed in, whom nobody
	// else bounds; missed counts the lines that it left out.
	strangers *rate.Limiter
	missed    atomic.Int64
}

func newAuditor(log *slog.Logger) *auditor {
	return &auditor{log: log, strangers: rate.NewLimiter(5, 20)}
}

// about tells the audit log which objects the body of a request is about. What
// the path says needs no telling.
func about(c *gin.Context, keys ...string) {
	callOf(c).object = strings.Join(keys, " ")
}

// write writes the line of a call that has been answered.
func (a *auditor) write(c *gin.Context, began time.Time, status int) {
	attrs := make([]slog.Attr, 0, 9)
	if acc := accountOf(c); acc != nil {
		attrs = append(attrs, slog.String("user", printable(acc.name)))
	} else {
		if !a.strangers.Allow() {
			a.missed.Add(1)
			return
		}
		// The name that was tried may be a password in the wrong place.
		attrs = append(attrs, slog.String("user", "-"))
		if missed := a.missed.Swap(0); missed > 0 {
			attrs = append(attrs, slog.Int64("missed", missed))
		}
	}
	path := c.Request.URL.EscapedPath()
	if p, err := url.PathUnescape(path); err == nil {
		path = p
	}
	attrs = append(attrs, slog.String("method", c.Request.Method), slog.String("path", printable(path)))
	if object := objectOf(c); object != "" {
		attrs = append(attrs, slog.String("object", printable(object)))
	}
	attrs = append(attrs, slog.Int("status", status), slog.String("from", c.Request.RemoteAddr),
		slog.Duration("took", time.Since(began)))
	a.log.LogAttrs(c.Request.Context(), slog.LevelInfo, "REST write", attrs...)
}

// objectOf is the key of the object that a call is about: from its body, or the
// parameter of its path.
func objectOf(c *gin.Context) string {
	if named := callOf(c).object; named != "" {
		return named
	}
	if len(c.Params) == 0 {
		return ""
	}
	key := c.Params[0].Value
	if strings.HasSuffix(c.FullPath(), "/*"+c.Params[0].Key) {
		key = strings.TrimPrefix(key, "/") // gin has it in the rest of a path
	}
	if k, err := url.PathUnescape(key); err == nil {
		return k
	}
	return key
}

// printable is a value from outside as it appears in the log: cut, and with
// escapes for what doesn't print.
func printable(s string) string {
	s = shown(s)
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
