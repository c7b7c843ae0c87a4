package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
)

// Epochs raises the epoch of the cluster, so that its terms are newer than all
// that switches remember.
type Epochs interface {
	RaiseEpoch(ctx context.Context) (uint32, error)
}

func (s *Server) epochRoutes() []route {
	if s.epochs == nil {
		return nil
	}
	return []route{{method: http.MethodPost, path: ownPath + "/cluster/raise-epoch", output: true, handle: s.raiseEpoch}}
}

// raiseEpoch is what `kvnet cluster raise-epoch` calls.
//
// @ID          raiseEpoch
// @Summary     Raise the epoch of the cluster
// @Description Switches refuse a controller whose generation is older than one that they have seen. After a store was made anew this makes the cluster's generations the newest.
// @Tags        cluster
// @Produce     json
// @Success     200 {object} object{epoch=integer} "the new epoch"
// @Failure     507
// @x-added     true
// @Router      /kvnet/v1/cluster/raise-epoch [post]
func (s *Server) raiseEpoch(c *gin.Context) error {
	epoch, err := s.epochs.RaiseEpoch(c.Request.Context())
	if errors.Is(err, store.ErrNotLeader) { // for a moment also after each raise
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, cause: err,
			message: err.Error()} // it names the leader, if there is one
	} else if err != nil {
		return storeFault(err)
	}
	return s.answer(c, http.StatusOK, map[string]uint32{"epoch": epoch})
}
