package rest

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// stream writes server-sent events to one client. Every write has a deadline.
type stream struct {
	c       *gin.Context
	control *http.ResponseController
	timeout time.Duration
}

// open sends the header. The server's own deadlines are those of short requests:
// that of reading would end the stream too.
func (s *stream) open() error {
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("open a stream of events: %w", err)
	}
	h := s.c.Writer.Header()
	h.Set("Content-Type", streamType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	s.c.Status(http.StatusOK)
	return nil
}

func (s *stream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, err := io.WriteString(s.c.Writer, text)
	return err
}

// flush sends what was written. Until then it may stay in a buffer.
func (s *stream) flush() error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	return s.control.Flush()
}

// event writes one event; revision 0: without an id.
func (s *stream) event(e event, revision int64) error {
	// JSON has no line breaks.
	text := "event: " + e.name + "\ndata: " + string(e.data) + "\n"
	if revision > 0 {
		text += "id: " + strconv.FormatInt(revision, 10) + "\n"
	}
	return s.write(text + "\n")
}

// batch writes the events of a batch, of which the last has the id.
func (s *stream) batch(b *batch) error {
	for i, e := range b.events {
		var id int64
		if i == len(b.events)-1 {
			id = b.revision
		}
		if err := s.event(e, id); err != nil {
			return err
		}
	}
	return nil
}
