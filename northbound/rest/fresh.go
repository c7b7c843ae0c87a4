package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// revisionHeader names the revision of the store that an answer is about: a
	// read contains it, and a write is in force at it.
	revisionHeader = "X-Kvnet-Revision"
	// consistentParam asks for an answer with all that was acknowledged before.
	consistentParam = "consistent"
	// freshTimeout bounds how long a read waits for that.
	freshTimeout = 3 * time.Second
)

func showRevision(c *gin.Context, revision int64) {
	c.Header(revisionHeader, strconv.FormatInt(revision, 10))
}

// freshen says which revision the answer to a read contains at least. A client
// that wants it waits until that is everything which any server had acknowledged
// when it asked.
func (s *Server) freshen(c *gin.Context, r *route) error {
	defer func() {
		if db := s.db.Snapshot(); db.Complete() {
			showRevision(c, db.Revision())
		}
	}()
	if r.stateless || r.writes() || c.Request.URL.RawQuery == "" {
		return nil
	}
	text, asked := c.GetQuery(consistentParam)
	if !asked {
		return nil
	}
	want, err := strconv.ParseBool(text)
	if err != nil {
		return badRequest("%s: %q is neither true nor false", consistentParam, shown(text))
	}
	if !want {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), freshTimeout)
	defer cancel()
	revision, err := s.store.Linearizable(ctx)
	if err == nil {
		err = s.db.WaitRevision(ctx, revision)
	}
	if err != nil {
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, cause: err,
			message: "this server can't find out now whether it has everything that is stored; without consistent=true it shows what it has"}
	}
	return nil
}
