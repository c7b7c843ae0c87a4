package rest

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"kvnet/model"
	"kvnet/model/state"
)

// readyTimeout bounds how long /readyz waits for the store.
const readyTimeout = 2 * time.Second

func (s *Server) healthRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/livez", public: true, stateless: true, long: true, handle: s.live},
		{method: http.MethodGet, path: "/readyz", public: true, stateless: true, handle: s.ready},
		{method: http.MethodGet, path: nodesPath + "/healthz", output: true, long: true, handle: s.healthz},
	}
}

// live says that the process answers.
//
// @ID       livez
// @Summary  Does the process answer?
// @Tags     health
// @Success  200 {object} object{status=string} "it does"
// @x-public true
// @x-added  true
// @Router   /livez [get]
func (s *Server) live(c *gin.Context) error {
	return s.answer(c, http.StatusOK, map[string]string{"status": "alive"})
}

// ready says whether this server can serve clients: it has read what is stored,
// and the store takes more.
//
// @ID       readyz
// @Summary  Can this server serve clients?
// @Tags     health
// @Success  200 {object} object{status=string} "it can"
// @Failure  503
// @x-public true
// @x-added  true
// @Router   /readyz [get]
func (s *Server) ready(c *gin.Context) error {
	if !s.db.Snapshot().Complete() {
		return s.notYet()
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "the store does not answer", cause: err}
	}
	return s.answer(c, http.StatusOK, map[string]string{"status": "ready"})
}

// notYetFor is the answer of a server that has not read what is stored to a request.
func (s *Server) notYetFor(c *gin.Context) error {
	e := s.notYet()
	if c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		e.message += "; nothing was stored"
	}
	return e
}

// notYet is the answer of a server that has not read what is stored.
func (s *Server) notYet() *apiError {
	return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, expected: true, message: s.waiting()}
}

// healthz says whether the Kubernetes API can be used: there is a configuration,
// not all nodes wait for their bootstrap, and the API server takes a connection.
// ONOS also compares its workers with those of Kubernetes.
//
// @ID          nodeHealthz
// @Summary     Can the Kubernetes API be used?
// @Tags        node
// @Produce     json
// @Success     200 {object} object{apiConfig=string} "apiConfig is ok or error"
// @Router      /onos/kubevirtnode/node/healthz [get]
func (s *Server) healthz(c *gin.Context) error {
	result := "error"
	db := s.db.Snapshot()
	if config := db.APIConfig(); config != nil && !allInit(db) && s.reachable(c.Request.Context(), config) {
		result = "ok"
	}
	return s.answer(c, http.StatusOK, map[string]string{"apiConfig": result})
}

// allInit tells whether there are nodes and all are in state INIT.
func allInit(db state.Snapshot) bool {
	any := false
	for n := range db.Nodes() {
		if db.NodeState(n.Hostname) != model.NodeInit {
			return false
		}
		any = true
	}
	return any
}

// reachTimeout bounds how long /healthz waits for the API server.
const reachTimeout = 2 * time.Second

// reachable tells whether the API server takes a connection. Calls at the same
// time share one attempt, so that many clients open no more connections than one.
func (s *Server) reachable(ctx context.Context, config *model.APIConfig) bool {
	address := netip.AddrPortFrom(config.IPAddress, uint16(config.Port)).String()
	_, err, _ := s.reaching.Do(address, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
		defer cancel()
		return nil, s.reach(ctx, address)
	})
	return err == nil
}

// connects opens a TCP connection and closes it.
func connects(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
