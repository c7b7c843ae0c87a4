package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
)

// Cluster changes who is a member of the cluster and makes backups of what is
// stored.
type Cluster interface {
	// RemoveMember takes a server out for good. The error is store.ErrNotFound if
	// there is none of the name, or a ClusterRefusal.
	RemoveMember(ctx context.Context, name string) error
	// Backup writes everything that is stored. The error may be a ClusterRefusal.
	Backup(ctx context.Context, w io.Writer) error
}

// ClusterRefusal is a sentence about why the cluster can't be changed so.
type ClusterRefusal string

func (r ClusterRefusal) Error() string { return string(r) }

const (
	removeTimeout = 20 * time.Second
	backupTimeout = 30 * time.Minute
)

func (s *Server) clusterRoutes() []route {
	if s.keeper == nil {
		return nil
	}
	return []route{
		{method: http.MethodDelete, path: ownPath + "/cluster/members/:name", long: true, handle: s.removeMember},
		// A backup holds secrets, so it is for those who may write.
		{method: http.MethodPost, path: ownPath + "/cluster/backup", long: true, handle: s.backup},
	}
}

// removeMember is what `kvnet cluster remove` calls.
//
// @ID          removeMember
// @Summary     Remove a server from the cluster
// @Description The server's data is of no use any more: it has to be emptied before it can join again. A removal that would cost the quorum is refused.
// @Tags        cluster
// @Param       name path string true "name of the server" extensions(x-example=server-3)
// @Success     204 "the server is no member any more"
// @Failure     400,404
// @Failure     409 "the server is the only member, or the one that answers, or the store is an external etcd cluster"
// @x-added     true
// @Router      /kvnet/v1/cluster/members/{name} [delete]
func (s *Server) removeMember(c *gin.Context) error {
	name, err := param(c, "name")
	if err != nil {
		return err
	}
	about(c, name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), removeTimeout)
	defer cancel()
	err = s.keeper.RemoveMember(ctx, name)
	var refusal ClusterRefusal
	switch {
	case errors.As(err, &refusal):
		return refuse(http.StatusConflict, "%s", refusal.Error())
	case errors.Is(err, store.ErrNotFound):
		return refuse(http.StatusNotFound, "the cluster has no member %q", shown(name))
	case errors.Is(err, store.ErrNoQuorum):
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 5, cause: err, message: "the member was not removed, which takes a majority"}
	case errors.Is(err, store.ErrUnavailable):
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 5, cause: err,
			message: "the member could not be removed now: there is no quorum, or there would be none without it, or the members have been in touch for too short a time"}
	case err != nil:
		return storeFault(err)
	}
	empty(c, http.StatusNoContent)
	return nil
}

// backup is what `kvnet cluster backup` calls.
//
// @ID          backup
// @Summary     A backup of everything that is stored
// @Description The answer is a file for `kvnet cluster restore`. It contains every write that was acknowledged before the call, passwords of API servers among them.
// @Tags        cluster
// @Produce     application/octet-stream,application/json
// @Success     200 {file} file "the backup"
// @Failure     409 "the store is an external etcd cluster"
// @x-added     true
// @Router      /kvnet/v1/cluster/backup [post]
func (s *Server) backup(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), backupTimeout)
	defer cancel()
	control := http.NewResponseController(c.Writer)
	for _, set := range []func(time.Time) error{control.SetReadDeadline, control.SetWriteDeadline} {
		if err := set(time.Now().Add(backupTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	c.Header("Content-Type", "application/octet-stream")
	c.Header("Content-Disposition", `attachment; filename="kvnet.backup"`)
	err := s.keeper.Backup(ctx, c.Writer)
	var refusal ClusterRefusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		c.Writer.Header().Del("Content-Disposition")
		return refuse(http.StatusConflict, "%s", refusal.Error())
	case errors.Is(err, store.ErrUnavailable) && !c.Writer.Written():
		c.Writer.Header().Del("Content-Disposition")
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "the store does not answer, so there is no backup", cause: err}
	case !c.Writer.Written():
		c.Writer.Header().Del("Content-Disposition")
		return storeFault(err)
	}
	s.log.Warn("a backup ended too early", "error", err)
	panic(http.ErrAbortHandler) // so that the client sees that it isn't whole
}
