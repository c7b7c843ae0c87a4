package rest

import (
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
)

// The context paths of ONOS's two apps, and of kvnet's own calls.
const (
	networkingPath = "/onos/kubevirtnetworking"
	nodePath       = "/onos/kubevirtnode"
	ownPath        = "/kvnet/v1"
)

// route is one call: a row of the table from which everything about it follows
// (matching, HEAD, OPTIONS, Allow, content negotiation, roles, metrics).
type route struct {
	method string
	path   string // gin's pattern
	handle func(c *gin.Context) error

	// input: the call reads a JSON body.
	input bool
	// typed: a body that comes must be JSON, though the call reads none.
	typed bool
	// output: the call answers JSON, so a client that takes none gets 406.
	output bool
	// public: the call needs no credentials.
	public bool
	// stateless: the call works before this server knows what is stored.
	stateless bool
	// long: the call may take long by nature, and takes no place among the
	// requests that are worked on.
	long bool
	// changes: a GET that changes something, for the audit log.
	changes bool
}

// writes tells whether the call needs the role admin.
func (r *route) writes() bool { return writes(r.method) }

func writes(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch:
		return true
	}
	return false
}

// table is the list of all calls.
func (s *Server) table() []route {
	return slices.Concat(
		s.healthRoutes(),
		s.networkRoutes(),
		s.nodeRoutes(),
		s.initRoutes(),
		s.apiConfigRoutes(),
		s.addedRoutes(),
		s.mm5Routes(),
		s.inspectRoutes(),
		s.docsRoutes(),
		s.epochRoutes(),
		s.adoptRoutes(),
		s.memberRoutes(),
		s.clusterRoutes(),
		s.eventRoutes(),
	)
}

// register puts the table into gin: each call, HEAD beside each GET, OPTIONS for
// each path.
func (s *Server) register(g *gin.Engine) {
	methods := map[string][]string{}
	public := map[string]bool{}
	var paths []string
	for _, r := range s.table() {
		if methods[r.path] == nil {
			paths = append(paths, r.path)
		}
		methods[r.path] = append(methods[r.path], r.method)
		public[r.path] = r.public
		h := s.serve(r)
		g.Handle(r.method, r.path, h)
		if r.method == http.MethodGet {
			methods[r.path] = append(methods[r.path], http.MethodHead)
			g.Handle(http.MethodHead, r.path, h)
		}
	}
	for _, p := range paths {
		allow := newAllowed(p, append(methods[p], http.MethodOptions))
		s.allowed = append(s.allowed, allow)
		g.Handle(http.MethodOptions, p, s.serve(route{
			method: http.MethodOptions, path: p, public: public[p], stateless: true,
			handle: func(c *gin.Context) error {
				c.Header("Allow", allow.methods)
				c.Status(http.StatusOK)
				return nil
			},
		}))
	}
}

// serve is the way of a request that has found its route. The order of refusals
// is the original's: 401 (or 404 and 405, which find no route), 415, 406, 403.
func (s *Server) serve(r route) gin.HandlerFunc {
	audited := r.writes() || r.changes
	return func(c *gin.Context) {
		if !audited {
			s.respond(c, &r)
			return
		}
		began, status := time.Now(), http.StatusInternalServerError // unless all goes well
		defer func() { s.audit.write(c, began, status) }()
		s.respond(c, &r)
		status = c.Writer.Status()
	}
}

func (s *Server) respond(c *gin.Context, r *route) {
	if err := s.pass(c, r); err != nil {
		s.fail(c, err)
	}
}

// pass takes a request through all that may refuse it, to its handler.
func (s *Server) pass(c *gin.Context, r *route) error {
	if !r.public {
		if err := s.authenticate(c); err != nil {
			return err
		}
	}
	hasBody := c.Request.ContentLength != 0
	if (r.input || r.typed && hasBody) && !sendsJSON(c.Request) {
		return refuse(http.StatusUnsupportedMediaType, "the content type %q can't be read here, only %s",
			shown(c.Request.Header.Get("Content-Type")), jsonType)
	}
	if r.output && !acceptsJSON(c.Request) {
		return refuse(http.StatusNotAcceptable, "the answer is %s, which the Accept header %q excludes",
			jsonType, shown(c.Request.Header.Get("Accept")))
	}
	if r.writes() && accountOf(c).role < roleAdmin {
		return refuse(http.StatusForbidden, "User has insufficient privilege for this request")
	}
	if c.Request.ContentLength > s.limits.Body {
		return s.tooLarge(c)
	}
	if !r.stateless && !s.db.Snapshot().Complete() {
		return s.notYetFor(c)
	}
	if !r.public {
		if err := s.freshen(c, r); err != nil {
			return err
		}
	}
	if r.input {
		taken, err := s.readBody(c)
		defer s.bodies.give(taken)
		if err != nil {
			return err
		}
	}
	if !r.long {
		places := s.readers
		if r.writes() || r.changes {
			places = s.writers
		}
		if err := s.turn(c, places); err != nil {
			return err
		}
		defer release(c)
	}
	return r.handle(c)
}
