package rest

import (
	"cmp"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// errorJSON is ONOS's shape of an error.
type errorJSON struct {
	// The status of the answer.
	Code int `json:"code" validate:"required" example:"404"`
	// What is wrong, for people.
	Message string `json:"message" validate:"required" example:"Network is not found for net-1"`
} // @name Error

// answer writes JSON.
func (s *Server) answer(c *gin.Context, status int, v any) (err error) {
	encodeErr := encoded(v, func(text []byte) { err = s.write(c, status, text) })
	return cmp.Or(encodeErr, err)
}

// answerObject writes an object as it is in the snapshot.
func (s *Server) answerObject(c *gin.Context, db state.Snapshot, o model.Object) error {
	text, err := s.forms.of(db, o)
	if err != nil {
		return err
	}
	return s.write(c, http.StatusOK, text)
}

// answerList writes all objects of a kind, by key, as the list of that name.
func (s *Server) answerList(c *gin.Context, name string, k model.Kind) error {
	list, err := s.forms.list(s.db.Snapshot(), k)
	if err != nil {
		return err
	}
	return s.write(c, http.StatusOK, []byte(`{"`+name+`":`), list, []byte(`}`))
}

// write writes a JSON text. The request gives its place back before its answer waits
// for anything.
func (s *Server) write(c *gin.Context, status int, parts ...[]byte) error {
	release(c)
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	leave, ok := s.outbox.enter(c.Request.Context(), length)
	if !ok {
		return s.outboxFull()
	}
	defer leave()
	c.Header("Content-Type", jsonType)
	c.Header("Content-Length", strconv.Itoa(length))
	c.Status(status)
	for _, p := range parts {
		if _, err := c.Writer.Write(p); err != nil {
			break // the client has gone
		}
	}
	return nil
}

// empty writes an answer without a body.
func empty(c *gin.Context, status int) {
	c.Status(status)
	c.Writer.WriteHeaderNow()
}

// fail writes a refusal.
func (s *Server) fail(c *gin.Context, err error) {
	e := asAPIError(err)
	if e.code >= http.StatusInternalServerError && !e.expected {
		s.log.Warn("REST request failed", "method", c.Request.Method, "path", c.Request.URL.EscapedPath(),
			"status", e.code, "message", e.message, "error", errors.Unwrap(e))
	}
	if e.retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(e.retryAfter))
	}
	message := e.message
	if errors.Is(e, store.ErrUnavailable) {
		if why := s.trouble(); why != "" {
			message += "; " + why
		}
	}
	if err := s.answer(c, e.code, errorJSON{e.code, message}); err != nil {
		s.log.Error("REST answer can't be written", "error", err)
	}
	c.Abort()
}

// warn adds a Warning header: something about a successful answer that the
// client should know.
func warn(c *gin.Context, message string) {
	// QuoteToASCII leaves nothing that could end the header or its text.
	c.Writer.Header().Add("Warning", "199 kvnet "+strconv.QuoteToASCII(message))
}

// outermost wraps everything: it counts, and turns a panic into an answer.
func (s *Server) outermost(c *gin.Context) {
	start := time.Now()
	s.metrics.inFlight.Inc()
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.log.Error("REST handler panicked", "path", c.Request.URL.EscapedPath(), "panic", p, "stack", string(debug.Stack()))
			if !c.Writer.Written() {
				s.fail(c, errors.New("panic"))
			}
		}
		s.metrics.inFlight.Dec()
		s.metrics.observe(c.FullPath(), c.Request.Method, c.Writer.Status(), time.Since(start))
	}()
	c.Next()
}
