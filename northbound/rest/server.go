package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"kvnet/model/state"
)

// Server serves REST and the metrics.
type Server struct {
	log       *slog.Logger
	store     Store
	db        *state.DB
	inspector Inspector
	waiting   func() string
	trouble   func() string
	epochs    Epochs
	adopter   Adopter
	members   Members
	keeper    Cluster
	feed      *feed
	auth      *authenticator
	audit     *auditor
	metrics   *metrics
	limits    Limits
	bodies    budget
	outbox    *outbox
	forms     *forms
	// readers and writers are the places of requests that are worked on.
	readers, writers chan struct{}

	// lookup resolves the name of an API server, reach connects to one, for all
	// who ask at the same time.
	lookup   func(ctx context.Context, name string) ([]netip.Addr, error)
	reach    func(ctx context.Context, address string) error
	reaching singleflight.Group

	handler http.Handler
	allowed []allowed // by path
	rest    listener
	stats   listener
}

// listener is an address that is listened on, and what is served there.
type listener struct {
	net.Listener
	server *http.Server
}

func (l listener) serve() error {
	if l.server.TLSConfig != nil {
		return l.server.ServeTLS(l.Listener, "", "")
	}
	return l.server.Serve(l.Listener)
}

// New makes a server and opens its ports. Serve must follow, or Close.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	auth, err := newAuthenticator(c.Accounts, c.Listen, c.Logger)
	if err != nil {
		return nil, err
	}
	secure, err := newTLS(c.TLS, c.Logger)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(c.Registry, c.Version)
	if err != nil {
		return nil, fmt.Errorf("register the metrics of REST: %w", err)
	}
	kept := newForms(c.DB)
	s := &Server{
		log: c.Logger, store: c.Store, db: c.DB, waiting: c.Waiting, trouble: c.Trouble, inspector: c.Inspector, epochs: c.Epochs, adopter: c.Adopter, members: c.Members, keeper: c.Cluster,
		auth: auth, audit: newAuditor(c.Logger), metrics: m, limits: c.Limits,
		feed:    newFeed(c.DB, kept, c.Limits.Events, m, c.Logger),
		forms:   kept,
		bodies:  budget{limit: c.Limits.Bodies},
		outbox:  newOutbox(c.Limits.Answers, c.Limits.Wait),
		readers: make(chan struct{}, c.Limits.Concurrent),
		writers: make(chan struct{}, c.Limits.Concurrent),
		lookup:  lookupIPv4,
		reach:   connects,
	}
	s.handler = s.engine()
	if s.rest, err = s.listen(c.Listen, s.handler); err != nil {
		return nil, fmt.Errorf("listen for REST on %s: %w", c.Listen, err)
	}
	if s.rest.server.TLSConfig = secure; secure == nil && !isLoopback(c.Listen) {
		s.log.Warn("REST speaks HTTP on an address that others can reach: passwords pass in clear; "+
			"give a certificate and its key (--rest-tls-cert, --rest-tls-key)", "listen", c.Listen)
	}
	if c.MetricsListen != "-" {
		if s.stats, err = s.listen(c.MetricsListen, metricsHandler(c.Registry)); err != nil {
			return nil, errors.Join(fmt.Errorf("listen for metrics on %s: %w", c.MetricsListen, err), s.Close())
		}
	}
	return s, nil
}

// engine makes the handler of REST.
func (s *Server) engine() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	// Ids may hold any character. gin matches the escaped path and leaves
	// decoding to param.
	g.UseEscapedPath = true
	g.UnescapePathValues = false
	g.RedirectTrailingSlash = false
	g.RedirectFixedPath = false
	g.HandleMethodNotAllowed = true
	g.Use(s.outermost)
	g.NoRoute(s.notFound)
	g.NoMethod(s.methodNotAllowed)
	s.register(g)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		normalizePath(r)
		g.ServeHTTP(w, r)
	})
}

func (s *Server) listen(address string, h http.Handler) (listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return listener{}, err
	}
	return listener{l, &http.Server{
		Handler:           h,
		ReadHeaderTimeout: s.limits.Header,
		ReadTimeout:       s.limits.Request,
		WriteTimeout:      s.limits.Response,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    64 << 10,
		// Broken requests and connections are the clients' faults.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}, nil
}

// Addr is the address that REST listens on.
func (s *Server) Addr() net.Addr { return s.rest.Addr() }

// MetricsAddr is the address that the metrics are served on; nil if they are not.
func (s *Server) MetricsAddr() net.Addr {
	if s.stats.Listener == nil {
		return nil
	}
	return s.stats.Addr()
}

// Serve serves until ctx ends, then waits a moment for running requests. It
// returns nil if it ended because of ctx.
func (s *Server) Serve(ctx context.Context) error {
	var all []listener
	for _, l := range []listener{s.rest, s.stats} {
		if l.Listener != nil {
			all = append(all, l)
		}
	}
	// The streams of events end with the feed, before requests are waited for.
	feeding, stopFeed := context.WithCancel(ctx)
	defer stopFeed()
	go s.feed.run(feeding)
	ended := make(chan error, len(all))
	for _, l := range all {
		go func() { ended <- l.serve() }()
	}
	var err error
	left := len(all)
	select {
	case <-ctx.Done():
	case err = <-ended:
		left--
	}
	stopFeed()
	<-s.feed.done
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Shutdown)
	defer cancel()
	for _, l := range all {
		if l.server.Shutdown(stop) != nil {
			_ = l.server.Close() // what takes longer is cut off
		}
	}
	for range left {
		if e := <-ended; err == nil {
			err = e
		}
	}
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve REST: %w", err)
}

// Close closes the ports of a server that Serve was not called for.
func (s *Server) Close() error {
	var errs []error
	for _, l := range []listener{s.rest, s.stats} {
		if l.Listener != nil {
			if err := l.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// notFound answers paths that are no call.
func (s *Server) notFound(c *gin.Context) {
	if err := s.authenticateUnknown(c); err != nil {
		s.fail(c, err)
		return
	}
	s.fail(c, refuse(http.StatusNotFound, "HTTP 404 Not Found: there is nothing at %s", shown(c.Request.URL.Path)))
}

// methodNotAllowed answers methods that a path doesn't know.
func (s *Server) methodNotAllowed(c *gin.Context) {
	if err := s.authenticateUnknown(c); err != nil {
		c.Writer.Header().Del("Allow")
		s.fail(c, err)
		return
	}
	allow := s.allow(c.Request.URL.EscapedPath())
	c.Header("Allow", allow)
	s.fail(c, refuse(http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed: %s knows only %s", shown(c.Request.URL.Path), allow))
}

// authenticateUnknown asks for credentials also where there is no call, as ONOS
// does below its contexts.
func (s *Server) authenticateUnknown(c *gin.Context) error {
	for _, p := range []string{"/onos", "/kvnet"} {
		if rest, ok := strings.CutPrefix(c.Request.URL.Path, p); ok && (rest == "" || rest[0] == '/') {
			return s.authenticate(c)
		}
	}
	return nil
}

// authenticate finds out who the client is.
func (s *Server) authenticate(c *gin.Context) error {
	acc, err := s.auth.request(c.Request)
	if err == nil {
		callOf(c).account = acc
		return nil
	}
	if errors.Is(err, errBusy) {
		s.metrics.refused.WithLabelValues("sign-ins").Inc()
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: err.Error()}
	}
	s.metrics.authFailures.Inc()
	e := refuse(http.StatusUnauthorized, "%s", err.Error())
	if errors.Is(err, errThrottled) {
		e.retryAfter = 1
	}
	c.Header("WWW-Authenticate", `Basic realm="karaf"`)
	return e
}
