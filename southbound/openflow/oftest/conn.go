package oftest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"kvnet/southbound/openflow/wire"
)

// conn is one connection to a controller.
type conn struct {
	s  *Switch
	nc net.Conn

	// Guarded by s.mu. role is 0 before the controller's hello.
	role    uint32
	out     []byte
	bundles map[uint32]*bundle

	wake chan struct{} // something is in out
	done chan struct{} // the reader has ended
}

type bundle struct {
	mods   []Mod
	closed bool
}

// run reads and answers until the connection ends.
func (c *conn) run() error {
	var writer sync.WaitGroup
	writer.Go(c.writeLoop)
	defer writer.Wait()
	defer close(c.done)
	defer c.nc.Close()
	c.s.mu.Lock()
	c.send(message(wire.TypeHello, 0, []byte{0, 1, 0, 8, 0, 0, 0, 1 << wire.Version}))
	c.s.mu.Unlock()
	r := wire.NewReader(c.nc)
	for {
		h, msg, err := r.Next()
		if err != nil {
			return err
		}
		c.s.awaitThaw(c.done)
		c.s.mu.Lock()
		err = c.handle(h, msg)
		c.s.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// awaitThaw waits while s is frozen, or until done.
func (s *Switch) awaitThaw(done <-chan struct{}) {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-done:
		}
	}
}

func (c *conn) writeLoop() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.s.awaitThaw(c.done)
		c.s.mu.Lock()
		b := c.out
		c.out = nil
		c.s.mu.Unlock()
		if _, err := c.nc.Write(b); err != nil {
			c.nc.Close()
			return
		}
	}
}

// send queues a message. s.mu is held.
func (c *conn) send(b []byte) {
	c.out = append(c.out, b...)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// broadcast tells the controllers, slaves or only the others. s.mu is held.
func (s *Switch) broadcast(slaves bool, b []byte) {
	for c := range s.conns {
		if c.role != 0 && (slaves || c.role != wire.RoleSlave) {
			c.send(b)
		}
	}
}

// depose makes all masters but one slaves. s.mu is held.
func (s *Switch) depose(but *conn) {
	for c := range s.conns {
		if c != but && c.role == wire.RoleMaster {
			c.role = wire.RoleSlave
			c.send(roleStatus(wire.RoleSlave, s.generation))
		}
	}
}

// handle carries out one message. s.mu is held.
func (c *conn) handle(h wire.Header, msg []byte) error {
	if c.role == 0 {
		if h.Type != wire.TypeHello {
			return fmt.Errorf("message of type %d instead of a hello: %w", h.Type, errGarbage)
		}
		c.role = wire.RoleEqual
		return nil
	}
	body := msg[wire.HeaderLen:]
	switch h.Type {
	case wire.TypeEchoRequest:
		c.send(message(wire.TypeEchoReply, h.XID, body))
	case wire.TypeEchoReply, wire.TypeSetConfig, wire.TypeError:
	case wire.TypeFeaturesRequest:
		c.send(features(h.XID, c.s.dpid))
	case wire.TypeBarrierRequest:
		c.send(message(wire.TypeBarrierReply, h.XID, nil))
	case wire.TypeRoleRequest:
		return c.handleRole(h, body)
	case wire.TypeMultipartRequest:
		return c.handleMultipart(h, body)
	case wire.TypeFlowMod, wire.TypeGroupMod, wire.TypePacketOut:
		c.handleMod(h, msg)
	case wire.TypeExperimenter:
		return c.handleExperimenter(h, msg)
	default:
		return fmt.Errorf("message of type %d: %w", h.Type, errGarbage)
	}
	return nil
}

func (c *conn) refuse(xid uint32, r Refusal, msg []byte) { c.send(errorMessage(xid, r, msg)) }

var (
	isSlave = Refusal{Type: wire.ErrorBadRequest, Code: wire.CodeIsSlave}
	stale   = Refusal{Type: wire.ErrorRoleRequestFailed, Code: wire.CodeStale}
)

func (c *conn) handleRole(h wire.Header, body []byte) error {
	if len(body) != 16 {
		return fmt.Errorf("role request of %d bytes: %w", len(body), errGarbage)
	}
	role, generation := be.Uint32(body), be.Uint64(body[8:])
	if role == wire.RoleMaster || role == wire.RoleSlave {
		if c.s.hasGen && int64(generation-c.s.generation) < 0 {
			c.refuse(h.XID, stale, append([]byte{h.Version, h.Type, 0, 24}, body...))
			return nil
		}
		c.s.generation, c.s.hasGen = generation, true
	}
	if role != wire.RoleNoChange {
		c.role = role
	}
	if role == wire.RoleMaster {
		c.s.depose(c)
	}
	c.send(roleReply(h.XID, c.role, c.s.generation))
	return nil
}

func (c *conn) handleMultipart(h wire.Header, body []byte) error {
	if len(body) < 8 {
		return fmt.Errorf("multipart request of %d bytes: %w", len(body), errGarbage)
	}
	s := c.s
	var entries [][]byte
	typ := be.Uint16(body)
	switch typ {
	case wire.MultipartPortDesc:
		for _, n := range slices.Sorted(maps.Keys(s.ports)) {
			entries = append(entries, appendPort(nil, s.ports[n]))
		}
	case wire.MultipartFlow:
		if len(body) < 8+32 {
			return fmt.Errorf("flow stats request of %d bytes: %w", len(body), errGarbage)
		}
		s.counts.FlowQueries++
		table, cookie, mask := body[8], be.Uint64(body[24:]), be.Uint64(body[32:])
		for _, e := range s.sorted() {
			if (table == wire.AllTables || table == e.rule.Table) && e.cookie&mask == cookie&mask {
				entries = append(entries, flowStats(e))
			}
		}
	case wire.MultipartGroupDesc, wire.MultipartGroupStats:
		s.counts.GroupQueries++
		for _, id := range slices.Sorted(maps.Keys(s.groups)) {
			if typ == wire.MultipartGroupDesc {
				entries = append(entries, groupDesc(s.groups[id]))
			} else {
				entries = append(entries, groupStats(s.groups[id]))
			}
		}
	default:
		return fmt.Errorf("multipart request of type %d: not simulated", typ)
	}
	c.send(multipart(h.XID, typ, entries))
	return nil
}

// check tells whether the switch takes m, when it is added to a bundle or when it
// is carried out.
func (s *Switch) check(m Mod, atAdd bool) *Refusal {
	if s.refuse == nil {
		return nil
	}
	if r := s.refuse(m); r != nil && r.AtAdd == atAdd {
		return r
	}
	return nil
}

func (c *conn) handleMod(h wire.Header, msg []byte) {
	if c.role == wire.RoleSlave {
		c.refuse(h.XID, isSlave, msg)
		return
	}
	m, err := decodeMod(h, msg)
	var refused *Refusal
	var removed []removedFlow
	if err != nil {
		refused = refusalOf(err)
	} else {
		if refused = c.s.check(m, true); refused == nil {
			refused = c.s.check(m, false)
		}
		if refused == nil {
			_, removed, refused = c.s.apply(m)
		}
	}
	if refused != nil {
		c.refuse(h.XID, *refused, msg)
		return
	}
	c.s.done(m, removed)
}
