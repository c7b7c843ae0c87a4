package rest

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
)

// readBody reads the body of a request. Other requests don't wait for it: the
// request takes no place until its body is there. What it took of the budget goes
// back when the request is done.
func (s *Server) readBody(c *gin.Context) (taken int64, err error) {
	body, taken, err := s.bodies.read(c.Request.Body, c.Request.ContentLength, s.limits.Body)
	switch {
	case errors.Is(err, errBodyTooLong):
		return taken, s.tooLarge(c)
	case errors.Is(err, errBodiesFull):
		s.metrics.refused.WithLabelValues("bodies").Inc()
		c.Header("Connection", "close")
		return taken, &apiError{code: http.StatusServiceUnavailable, retryAfter: 1,
			message: "too much is being sent to this server at a time"}
	case err != nil:
		c.Header("Connection", "close")
		return taken, &apiError{code: http.StatusBadRequest, message: "the body did not arrive as a whole", cause: err}
	}
	callOf(c).body = body
	return taken, nil
}

func (s *Server) tooLarge(c *gin.Context) error {
	s.metrics.refused.WithLabelValues("body").Inc()
	c.Header("Connection", "close") // the rest isn't read
	return refuse(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes", s.limits.Body)
}

var (
	errBodyTooLong = errors.New("the body is too long")
	errBodiesFull  = errors.New("the bodies of all requests are too long together")
)

// budget bounds the memory of the bodies of all requests.
type budget struct {
	limit int64
	used  atomic.Int64
}

// freeBody is how much of each body is read without asking the budget.
const freeBody = 1024

// read reads at most limit bytes; length is the announced one, or negative. What
// arrives is counted as it arrives, so a client that announces much and sends
// nothing takes nothing. The caller gives back what was taken, also after an error.
func (b *budget) read(r io.Reader, length, limit int64) (body []byte, taken int64, err error) {
	if r == nil {
		return nil, 0, nil
	}
	first := int64(freeBody)
	if length >= 0 {
		first = min(first, length+1) // one more for the end to be found
	}
	out := make([]byte, 0, first)
	for {
		if len(out) == cap(out) {
			size := grown(int64(cap(out)), length, limit)
			if b.used.Add(size) > b.limit {
				b.used.Add(-size)
				return nil, taken, errBodiesFull
			}
			// The former buffer is given back once it isn't needed any more.
			out = append(make([]byte, 0, size), out...)
			b.give(taken)
			taken = size
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if int64(len(out)) > limit {
			return nil, taken, errBodyTooLong
		}
		if errors.Is(err, io.EOF) {
			return out, taken, nil
		}
		if err != nil {
			return nil, taken, err
		}
	}
}

// grown is the size of the buffer that follows a full one: twice as large, but
// with no more room than the body can need and one byte, which the end of the body
// is found with.
func grown(size, length, limit int64) int64 {
	most := limit
	if size <= length && length < limit {
		most = length
	}
	return min(2*size, most+1)
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// turn waits for a place among the requests that are worked on. Reads and writes
// have places of their own, so that a store that doesn't answer stops no read.
func (s *Server) turn(c *gin.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		callOf(c).places = places
		return nil
	default:
	}
	t := time.NewTimer(s.limits.Wait)
	defer t.Stop()
	select {
	case places <- struct{}{}:
		callOf(c).places = places
		return nil
	case <-t.C:
	case <-c.Request.Context().Done():
	}
	s.metrics.refused.WithLabelValues("concurrent").Inc()
	return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, message: "too many requests at a time"}
}

// release gives the place of a request back. It happens before the answer is
// written: a client that reads slowly holds nobody up.
func release(c *gin.Context) {
	if x := callOf(c); x.places != nil {
		<-x.places
		x.places = nil
	}
}
