package openflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kvnet/southbound/openflow/wire"
)

// maxMultipart bounds what is kept of one multipart reply.
const maxMultipart = 512 << 20

// calls are the requests that wait for an answer, by their transaction ids.
type calls struct {
	mu      sync.Mutex
	xid     uint32
	waiting map[uint32]*call
	bundles []*bundle
	bundle  uint32 // the last bundle id
}

// call is a request that waits for an answer.
type call struct {
	typ       uint8  // of the answer
	multipart uint16 // its type, if it is one
	parts     [][]byte
	size      int
	err       error
	done      chan struct{} // closed when parts and err are final
}

func (c *calls) newXID() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newXIDs(1)
}

// newXIDs takes n successive transaction ids and returns the first. 0 is never
// among them.
func (c *calls) newXIDs(n uint32) uint32 {
	if c.xid > ^uint32(0)-n {
		c.xid = 0
	}
	first := c.xid + 1
	c.xid += n
	return first
}

// start makes k wait for an answer.
func (c *calls) start(k *call) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	xid := c.newXIDs(1)
	c.waiting[xid] = k
	return xid
}

// forget ends the wait for an answer.
func (c *calls) forget(xid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, xid)
}

// finish ends a call with err. It is false if nobody waits for xid.
func (c *calls) finish(xid uint32, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.waiting[xid]
	if k == nil {
		return false
	}
	delete(c.waiting, xid)
	k.err = err
	close(k.done)
	return true
}

// answer takes in an answer without content.
func (c *calls) answer(h wire.Header) bool {
	c.mu.Lock()
	k := c.waiting[h.XID]
	c.mu.Unlock()
	return k != nil && k.typ == h.Type && c.finish(h.XID, nil)
}

// part takes in a part of a multipart reply, which it copies.
func (c *calls) part(h wire.Header, typ uint16, more bool, body []byte) bool {
	c.mu.Lock()
	k := c.waiting[h.XID]
	c.mu.Unlock()
	switch {
	case k == nil || k.typ != h.Type:
		return false
	case k.multipart != typ:
		return c.finish(h.XID, fmt.Errorf("multipart reply of type %d to a request of type %d", typ, k.multipart))
	}
	// Only the reader gets here, and whoever waits looks at the parts when the
	// call is done: no lock is needed.
	if k.size += len(body); k.size > maxMultipart {
		return c.finish(h.XID, fmt.Errorf("multipart reply of more than %d bytes", maxMultipart))
	}
	k.parts = append(k.parts, slices.Clone(body))
	return more || c.finish(h.XID, nil)
}

// RefusedError says that the switch answered a request with an error.
type RefusedError struct {
	Type, Code uint16
	// Text names type and code.
	Text string
}

// Error implements error.
func (e *RefusedError) Error() string { return "the switch refused the request: " + e.Text }

// request sends what frame makes of a transaction id and waits for the answer.
func (s *Session) request(ctx context.Context, k *call, frame func(xid uint32) []byte) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	k.done = make(chan struct{})
	xid := s.calls.start(k)
	defer s.calls.forget(xid)
	if err := s.enqueue(ctx, frame(xid)); err != nil {
		return err
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return fmt.Errorf("wait for an answer of switch %s: %w", s.dpid, ctx.Err())
	case <-s.done:
		return s.closedErr()
	}
}

// Barrier waits until the switch has done all that was sent before.
func (s *Session) Barrier(ctx context.Context) error {
	err := s.request(ctx, &call{typ: wire.TypeBarrierReply}, func(xid uint32) []byte {
		return newMessage(wire.TypeBarrierRequest, xid, nil)
	})
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

// query sends a multipart request and decodes all parts of the answer.
func query[T any](ctx context.Context, s *Session, what string, typ uint16, body []byte, decode func([]byte) ([]T, error)) ([]T, error) {
	k := &call{typ: wire.TypeMultipartReply, multipart: typ}
	err := s.request(ctx, k, func(xid uint32) []byte { return multipartRequest(xid, typ, body) })
	if err != nil {
		return nil, fmt.Errorf("read %s of switch %s: %w", what, s.dpid, err)
	}
	var out []T
	for _, p := range k.parts {
		v, err := decode(p)
		if err != nil {
			// It sends garbage: nothing of it can be relied on.
			s.close(err)
			return nil, fmt.Errorf("read %s of switch %s: %w", what, s.dpid, err)
		}
		out = append(out, v...)
	}
	return out, nil
}

// Flows reads rules.
func (s *Session) Flows(ctx context.Context, q FlowQuery) ([]FlowEntry, error) {
	out, err := query(ctx, s, "the rules", wire.MultipartFlow, flowStatsBody(q), wire.DecodeFlows)
	for i := range out {
		out[i].Rule.Switch = s.dpid
	}
	return out, err
}

// Groups reads all groups.
func (s *Session) Groups(ctx context.Context) ([]GroupEntry, error) {
	out, err := query(ctx, s, "the groups", wire.MultipartGroupDesc, nil, wire.DecodeGroups)
	for i := range out {
		out[i].Group.Switch = s.dpid
	}
	return out, err
}

// GroupStats reads the counters of all groups.
func (s *Session) GroupStats(ctx context.Context) ([]GroupStats, error) {
	body := append(u32(wire.AllGroups), 0, 0, 0, 0)
	return query(ctx, s, "the statistics of groups", wire.MultipartGroupStats, body, wire.DecodeGroupStats)
}

// PortStats reads the counters of all ports.
func (s *Session) PortStats(ctx context.Context) ([]PortStats, error) {
	body := append(u32(wire.AnyPort), 0, 0, 0, 0)
	return query(ctx, s, "the statistics of ports", wire.MultipartPortStats, body, wire.DecodePortStats)
}

// TableStats reads the counters of all tables.
func (s *Session) TableStats(ctx context.Context) ([]TableStats, error) {
	return query(ctx, s, "the statistics of tables", wire.MultipartTable, nil, wire.DecodeTableStats)
}

// Description reads what the switch says about itself.
func (s *Session) Description(ctx context.Context) (Description, error) {
	out, err := query(ctx, s, "the description", wire.MultipartDesc, nil, func(b []byte) ([]Description, error) {
		d, err := wire.DecodeDesc(b)
		return []Description{d}, err
	})
	if err != nil {
		return Description{}, err
	}
	if len(out) != 1 {
		return Description{}, errors.New("read the description of switch " + s.dpid.String() + ": it came in several parts")
	}
	return out[0], nil
}
