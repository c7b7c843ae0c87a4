package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

const streamType = "text/event-stream"

// EventLimits bounds the streams of events. Zero values mean the defaults.
type EventLimits struct {
	// Streams is how many there may be at a time. Default 64.
	Streams int
	// Keep is how many bytes of past events are held, for clients that connect
	// again. Default 16 MiB.
	Keep int
	// Write is the time in which a client must have taken what is sent. Default
	// 10 s.
	Write time.Duration
	// KeepAlive is the time between two signs of life. Default 15 s.
	KeepAlive time.Duration
	// Life is how long a stream lasts: then the client connects again, and signs
	// in again. Default 1 h.
	Life time.Duration
}

func (l EventLimits) withDefaults() EventLimits {
	return EventLimits{
		Streams: cmp.Or(l.Streams, 64), Keep: cmp.Or(l.Keep, 16<<20), Write: cmp.Or(l.Write, 10*time.Second),
		KeepAlive: cmp.Or(l.KeepAlive, 15*time.Second), Life: cmp.Or(l.Life, time.Hour),
	}
}

func (s *Server) eventRoutes() []route {
	return []route{{method: http.MethodGet, path: ownPath + "/events", long: true, handle: s.events}}
}

// events is GET /kvnet/v1/events: server-sent events (HTML standard, section 9.2).
//
// What a client can rely on: whoever lists a kind after it has connected, and
// applies what follows, has the latest version of everything. Versions between may
// be left out, an event may come twice, but nothing is ever missing without a
// RESYNC event, after which the client has to list anew. The id of an event is the
// revision up to which everything has been sent. So only the last event of a
// revision has one: a client that loses the connection in the midst of a revision
// gets all of it again.
//
// @ID          streamEvents
// @Summary     What changes, as it changes
// @Description Server-sent events. event is ONOS's name of the change, data its object before and after (null where there is none), id the revision up to which everything has been sent; of the events of one revision only the last has it. After a RESYNC event, whose data is a revision and a reason, events are missing: list everything anew.
// @Tags        inspection
// @Produce     text/event-stream,application/json
// @Param       since         query  integer false "send what changed after this revision first" minimum(0)
// @Param       Last-Event-ID header string  false "the same; an EventSource sends it when it connects again"
// @Success     200 {object} eventJSON "the events; this is the data of one"
// @Failure     400,406
// @x-added     true
// @Router      /kvnet/v1/events [get]
func (s *Server) events(c *gin.Context) error {
	if !accepts(c.Request, streamType, "text/*") {
		return refuse(http.StatusNotAcceptable, "the answer is %s, which the Accept header %q excludes",
			streamType, shown(c.Request.Header.Get("Accept")))
	}
	since, resume, err := sinceOf(c)
	if err != nil {
		return err
	}
	if c.Request.Method == http.MethodHead {
		c.Header("Content-Type", streamType)
		empty(c, http.StatusOK)
		return nil
	}
	select {
	case s.feed.places <- struct{}{}:
		defer func() { <-s.feed.places }()
	default:
		s.metrics.refused.WithLabelValues("streams").Inc()
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 5, message: "too many streams of events are open"}
	}
	if err := s.awaitFeed(c.Request.Context()); err != nil {
		return err
	}
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()
	st := &stream{c: c, control: http.NewResponseController(c.Writer), timeout: s.limits.Events.Write}
	if err := st.open(); err != nil {
		return err
	}
	s.cut(c, s.follow(st, since, resume))
	return nil
}

// sinceOf is the revision after which the client wants events. What an EventSource
// sends when it connects again is newer than what its address says.
func sinceOf(c *gin.Context) (since int64, ok bool, err error) {
	for _, in := range []struct{ name, value string }{
		{"the header Last-Event-ID", c.Request.Header.Get("Last-Event-ID")},
		{"since", c.Query("since")},
	} {
		if in.value == "" {
			continue
		}
		n, err := strconv.ParseInt(in.value, 10, 64)
		if err != nil || n < 0 {
			return 0, false, badRequest("%s: %q is no revision", in.name, shown(in.value))
		}
		return n, true, nil
	}
	return 0, false, nil
}

// awaitFeed waits until the feed knows what is stored.
func (s *Server) awaitFeed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wait)
	defer cancel()
	select {
	case <-s.feed.begun:
		return nil
	case <-s.feed.done:
	case <-ctx.Done():
	}
	return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "this server has no events yet"}
}

// Why a stream is cut off.
var (
	errSlow    = errors.New("the client reads too slowly: the next events are held no longer")
	errRevoked = errors.New("the account may not sign in any more")
)

// follow sends events until the client goes, is too slow, may not read any more, or
// the stream is to end. It looks at the account before whatever it sends.
func (s *Server) follow(st *stream, since int64, resume bool) error {
	place, revision := s.feed.end()
	if resume {
		var held bool
		if place, revision, held = s.feed.join(since); !held {
			if err := st.event(resync(revision, "events after revision "+strconv.FormatInt(since, 10)+" are not held"), revision); err != nil {
				return err
			}
		}
	}
	// Without data this is no event; the client keeps the id.
	if err := st.write("id: " + strconv.FormatInt(revision, 10) + "\n\n"); err != nil {
		return err
	}
	end := time.NewTimer(s.limits.Events.Life)
	defer end.Stop()
	alive := time.NewTicker(s.limits.Events.KeepAlive)
	defer alive.Stop()
	acc := accountOf(st.c)
	for {
		if !s.auth.holds(acc) {
			return errRevoked
		}
		b, wake, lost := s.feed.at(place)
		switch {
		case lost:
			return errSlow
		case b != nil:
			if err := st.batch(b); err != nil {
				return err
			}
			place++
			continue
		}
		if err := st.flush(); err != nil {
			return err
		}
		select {
		case <-wake:
		case <-alive.C:
			if err := st.write(": kept alive\n\n"); err != nil {
				return err
			}
		case <-end.C:
			return nil
		case <-s.feed.done:
			return nil
		case <-st.c.Request.Context().Done():
			return nil
		}
	}
}

// cut says that a stream ended before its time. A client that goes is no news.
func (s *Server) cut(c *gin.Context, err error) {
	if errors.Is(err, errRevoked) {
		s.log.Info("stream of events ended: the account may not sign in any more", "user", accountOf(c).name, "from", c.Request.RemoteAddr)
		return
	}
	if !errors.Is(err, errSlow) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	s.metrics.cutStreams.Inc()
	s.log.Warn("stream of events cut off: the client reads too slowly", "user", accountOf(c).name, "from", c.Request.RemoteAddr)
}

// resync is the event that says that a client has to list everything anew: events
// before the revision are missing.
func resync(revision int64, reason string) event {
	data, err := marshal(struct {
		Revision int64  `json:"revision"`
		Reason   string `json:"reason"`
	}{revision, reason})
	if err != nil {
		data = []byte("{}") // two plain fields can't fail
	}
	return event{"RESYNC", data}
}
