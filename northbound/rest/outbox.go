package rest

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// freeAnswer is the length below which an answer isn't counted.
const freeAnswer = 64 << 10

// outbox bounds the memory of answers that are written and not yet taken. Who reads
// a long list slowly holds a copy of it, of which there must not be one for each
// connection.
type outbox struct {
	limit, waitingLimit int64
	room, waiting       *semaphore.Weighted // in bytes
	wait                time.Duration
}

// waitingShare is the part of the outbox's size that answers which wait for room may
// have beside it.
const waitingShare = 4

func newOutbox(limit int64, wait time.Duration) *outbox {
	o := &outbox{limit: limit, waitingLimit: max(1, limit/waitingShare), wait: wait}
	o.room, o.waiting = semaphore.NewWeighted(o.limit), semaphore.NewWeighted(o.waitingLimit)
	return o
}

// enter takes room for an answer of a length, and waits for it if few others do. A single answer
// that is larger than the outbox takes all of it.
func (o *outbox) enter(ctx context.Context, length int) (leave func(), ok bool) {
	if length < freeAnswer {
		return func() {}, true
	}
	held := min(int64(length), o.limit)
	leave = func() { o.room.Release(held) }
	if o.room.TryAcquire(held) {
		return leave, true
	}
	waits := min(held, o.waitingLimit)
	if !o.waiting.TryAcquire(waits) {
		return nil, false
	}
	defer o.waiting.Release(waits)
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	return leave, o.room.Acquire(ctx, held) == nil
}

// outboxFull is the refusal for want of room.
func (s *Server) outboxFull() error {
	s.metrics.refused.WithLabelValues("answers").Inc()
	return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1,
		message: "too many long answers have not been taken by their clients yet"}
}
