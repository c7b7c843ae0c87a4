package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// readyTimeout bounds how long /readyz waits for the store.
const readyTimeout = 2 * time.Second

func (s *Server) healthRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/livez", public: true, stateless: true, long: true, handle: s.live},
		{method: http.MethodGet, path: "/readyz", public: true, stateless: true, handle: s.ready},
		{method: http.MethodGet, path: nodesPath + "/healthz", output: true, handle: s.healthz},
	}
}

// live says that the process answers.
func (s *Server) live(c *gin.Context) error {
	return answer(c, http.StatusOK, map[string]string{"status": "alive"})
}

// ready says whether this server can serve clients: it has read what is stored,
// and the store takes more.
func (s *Server) ready(c *gin.Context) error {
	if !s.db.Snapshot().Complete() {
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "this server has not read yet what is stored"}
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "the store does not answer", cause: err}
	}
	return answer(c, http.StatusOK, map[string]string{"status": "ready"})
}

// healthz says whether the Kubernetes API can be used. In ONOS it is "ok" only
// with an API configuration, and none can be stored yet.
func (s *Server) healthz(c *gin.Context) error {
	return answer(c, http.StatusOK, map[string]string{"apiConfig": "error"})
}
