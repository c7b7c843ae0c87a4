package linear

import (
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// History is what clients did and learned, in one time.
type History struct {
	began time.Time

	mu      sync.Mutex
	closed  []porcupine.Operation
	open    map[int]porcupine.Operation // by a number of their own
	started int
}

// NewHistory is an empty history that begins now.
func NewHistory() *History {
	return &History{began: time.Now(), open: map[int]porcupine.Operation{}}
}

// Begin records that a client is about to send a request.
func (h *History) Begin(client int, in Input) (id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started++
	h.open[h.started] = porcupine.Operation{ClientId: client, Input: in, Output: Output{}, Call: int64(time.Since(h.began))}
	return h.started
}

// End records what came of a request. A write with unknown outcome stays open: it
// may be carried out at any time from its beginning on. What says nothing is left
// out.
func (h *History) End(id int, out Output) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.open[id]
	read := o.Input.(Input).Kind == Read
	if out.Outcome == Unknown && !read {
		return
	}
	delete(h.open, id)
	if out.Outcome == Void || out.Outcome == Unknown {
		return
	}
	o.Output, o.Return = out, int64(time.Since(h.began))
	h.closed = append(h.closed, o)
}

// Now is the time in the history.
func (h *History) Now() time.Duration { return time.Since(h.began) }

// Record adds an operation whose outcome is known.
func (h *History) Record(client int, in Input, out Output, call, ret time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = append(h.closed, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
}

// Operations are all so far that tell something. What is open ends after all
// others.
func (h *History) Operations() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := append([]porcupine.Operation(nil), h.closed...)
	end := int64(time.Since(h.began)) + 1
	for _, o := range h.open {
		if o.Input.(Input).Kind == Read {
			continue // nobody waits for its answer any more
		}
		o.Return = end
		out = append(out, o)
	}
	return out
}
