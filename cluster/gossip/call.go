package gossip

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Handler answers a request of another member. ctx ends when the other side
// waits no longer. Its error's text is sent back.
type Handler func(ctx context.Context, from Member, payload []byte) ([]byte, error)

// The errors of Call.
var (
	// ErrBusy says that too many calls are under way.
	ErrBusy = errors.New("too many calls are under way")
	// ErrNoMember says that there is no live member of the name.
	ErrNoMember = errors.New("no live member has this name")
	// ErrClosed says that the gossip has been closed.
	ErrClosed = errors.New("the gossip is closed")
)

// CallError is an error that the other member's handler returned.
type CallError struct{ Member, Kind, Text string }

// Error says who refused what, and why.
func (e *CallError) Error() string {
	return fmt.Sprintf("%s: member %q answered: %s", e.Kind, e.Member, e.Text)
}

const (
	maxCalls    = 64 // of this server, under way
	maxRequests = 64 // of others, waiting for a handler
	workers     = 8  // handlers that run at a time
	callTime    = 5 * time.Second
)

// calls are the requests of this server and those of others.
type calls struct {
	id   identity
	view *view
	// send delivers a frame to a member. It may block for a bounded time.
	send func(to Member, b []byte) error

	requests chan frame
	wg       sync.WaitGroup

	mu       sync.Mutex
	handlers map[string]Handler
	waiting  map[uint64]*outstanding
	last     uint64
	closed   bool
}

type outstanding struct {
	to     string
	answer chan frame
}

func newCalls(id identity, v *view, send func(Member, []byte) error) *calls {
	return &calls{
		id: id, view: v, send: send,
		requests: make(chan frame, maxRequests),
		handlers: map[string]Handler{},
		waiting:  map[uint64]*outstanding{},
	}
}

// run answers requests until ctx ends.
func (c *calls) run(ctx context.Context) {
	for range workers {
		c.wg.Go(func() {
			for {
				select {
				case f := <-c.requests:
					c.serve(ctx, f)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	<-ctx.Done()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}

// received takes a frame in. It never blocks: a request for which there is no
// room is dropped, and its sender asks again.
func (c *calls) received(f frame) (dropped bool) {
	if f.kind == frameRequest {
		select {
		case c.requests <- f:
			return false
		default:
			return true
		}
	}
	c.mu.Lock()
	o := c.waiting[f.id]
	c.mu.Unlock()
	if o == nil || o.to != f.from || f.to != c.id.instance {
		return false // too late, or not asked for
	}
	select {
	case o.answer <- f:
	default:
	}
	return false
}

func (c *calls) serve(ctx context.Context, f frame) {
	if f.to != c.id.instance {
		return // it is for an earlier life of this server
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	from, ok := c.sender(ctx, f)
	if !ok {
		return // it can't be answered
	}
	c.mu.Lock()
	h := c.handlers[f.method]
	c.mu.Unlock()
	answer := frame{kind: frameAnswer, id: f.id, from: c.id.name, instance: c.id.instance, to: f.instance}
	var err error
	if h == nil {
		err = fmt.Errorf("it does not answer requests of the kind %q now", f.method)
	} else {
		answer.payload, err = h(ctx, from, f.payload)
	}
	b, tooLong := answer.encode()
	if err = errors.Join(err, tooLong); err != nil {
		text := err.Error()
		answer.kind, answer.payload = frameError, []byte(text[:min(len(text), 1024)])
		b, _ = answer.encode()
	}
	// The sender asks again if this gets lost.
	_ = c.send(from, b)
}

// unknownTime bounds the wait for news of a sender that isn't known yet.
const unknownTime = 2 * time.Second

// sender waits for the member that has sent f to be known: what a server sends
// right after it has joined may overtake the news that it is there.
func (c *calls) sender(ctx context.Context, f frame) (m Member, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, unknownTime)
	defer cancel()
	for {
		_, changed := c.view.members()
		if m, ok := c.view.get(f.from); ok && m.Meta.Instance == f.instance {
			return m, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Member{}, false
		}
	}
}

func (c *calls) call(ctx context.Context, closing <-chan struct{}, to, kind string, payload []byte) ([]byte, error) {
	m, ok := c.view.get(to)
	if !ok || m.State != Alive {
		return nil, fmt.Errorf("%s: %q: %w", kind, to, ErrNoMember)
	}
	limit := callTime
	if d, ok := ctx.Deadline(); ok {
		limit = time.Until(d)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.mu.Lock()
	if c.closed || len(c.waiting) >= maxCalls {
		err := ErrBusy
		if c.closed {
			err = ErrClosed
		}
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	id := c.last + 1
	b, err := frame{
		kind: frameRequest, id: id, from: c.id.name, instance: c.id.instance, to: m.Meta.Instance,
		method: kind, timeout: max(limit, 0), payload: payload,
	}.encode()
	if err != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	o := &outstanding{to: to, answer: make(chan frame, 1)}
	c.last, c.waiting[id] = id, o
	// Sending knows no context. The call's place stays taken until both have
	// ended, so that the bound holds for these goroutines too.
	sent := make(chan error, 1)
	c.wg.Go(func() {
		sent <- c.send(m, b)
		<-ctx.Done()
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	})
	c.mu.Unlock()
	for {
		select {
		case err := <-sent:
			if err != nil {
				return nil, fmt.Errorf("%s: send to member %q: %w", kind, to, err)
			}
			sent = nil
		case a := <-o.answer:
			if a.kind == frameError {
				return nil, &CallError{Member: to, Kind: kind, Text: string(a.payload)}
			}
			return a.payload, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: member %q has not answered: %w", kind, to, context.Cause(ctx))
		case <-closing:
			return nil, ErrClosed
		}
	}
}

// handle sets who answers requests of a kind; nil: nobody.
func (c *calls) handle(kind string, h Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h == nil {
		delete(c.handlers, kind)
		return
	}
	c.handlers[kind] = h
}
