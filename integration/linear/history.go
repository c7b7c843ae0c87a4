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

// Of is the history with all writes, and of the reads those that are consistent or
// those that are not.
func Of(history []porcupine.Operation, consistent bool) []porcupine.Operation {
	var out []porcupine.Operation
	seen := map[string]bool{}
	for _, o := range history {
		in := o.Input.(Input)
		if in.Kind == Read && in.Consistent != consistent {
			continue
		}
		seen[o.Output.(Output).Value] = true
		out = append(out, o)
	}
	return prune(out, seen)
}

// prune leaves out updates with unknown outcome whose value nobody has seen. They
// change nothing else, so the history fits without them if and only if it does with
// them at its end; and each of them would double the work of the check.
func prune(history []porcupine.Operation, seen map[string]bool) []porcupine.Operation {
	out := history[:0]
	for _, o := range history {
		in := o.Input.(Input)
		if in.Kind == Update && o.Output.(Output).Outcome == Unknown && !seen[in.Value] {
			continue
		}
		out = append(out, o)
	}
	return out
}
