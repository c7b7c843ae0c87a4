package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
)

// storeContext is the context of a write. A write that has begun isn't given up
// when its client goes away: its outcome is known to the log then.
func (s *Server) storeContext(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request.Context()), s.limits.Store)
}

// settle waits until this server can read what was written at the revision, so
// that the client reads its own write. After a while the answer goes out all the
// same: the write has happened.
func (s *Server) settle(c *gin.Context, revision int64) {
	showRevision(c, revision)
	if s.db.Snapshot().Revision() >= revision {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.limits.OwnWrite)
	defer cancel()
	if s.db.WaitRevision(ctx, revision) != nil {
		s.metrics.lateReads.Inc()
		warn(c, "this is stored, but this server may not show it yet")
	}
}

// ErrNotOpen says that a server's store is not open yet, so that nothing was done.
var ErrNotOpen = errors.New("the store is not open yet")

// storeFault is the answer for what went wrong in the store, whatever the object.
// Handlers look first for what means something particular to them.
func storeFault(err error) error {
	var taken *store.BridgeTakenError
	var known *apiError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known): // a refusal of the handler's own
		return known
	case errors.As(err, &taken):
		return badRequest("%s", taken.Error())
	case errors.Is(err, store.ErrTooLarge):
		return &apiError{code: http.StatusRequestEntityTooLarge, message: "the store takes no writes of this size; nothing was stored", cause: err}
	case errors.Is(err, store.ErrNoSpace):
		return &apiError{code: http.StatusInsufficientStorage, message: "the store has no space left; nothing was stored", cause: err}
	case errors.Is(err, store.ErrConflict):
		return &apiError{code: http.StatusConflict, retryAfter: 1, message: "somebody else changed the same objects at the same time, again and again; nothing was stored", cause: err}
	case errors.Is(err, ErrNotOpen):
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "the store is not open yet; nothing was stored", cause: err}
	case errors.Is(err, store.ErrUnavailable):
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "the store does not answer; whether the write was stored is not known", cause: err}
	}
	return &apiError{code: http.StatusInternalServerError, message: "the store failed; its log says more", cause: err}
}
