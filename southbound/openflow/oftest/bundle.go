package oftest

import (
	"fmt"

	"kvnet/southbound/openflow/wire"
)

// bundleFailed makes a refusal of ONF's bundle error code.
func bundleFailed(code uint16) Refusal { return Refusal{Type: wire.ErrorExperimenter, Code: code} }

// Codes of ONF's bundle errors.
const (
	codeBadID      uint16 = 2302
	codeExists     uint16 = 2303
	codeClosed     uint16 = 2304
	codeBadXID     uint16 = 2309
	codeMsgFailed  uint16 = 2313
	bundleAddFixed        = 16 + 8 // header, experimenter, then id, padding and flags
)

func (c *conn) handleExperimenter(h wire.Header, msg []byte) error {
	if len(msg) < bundleAddFixed || be.Uint32(msg[8:]) != wire.ExperimenterONF {
		return fmt.Errorf("experimenter's message of %d bytes: %w", len(msg), errGarbage)
	}
	if c.role == wire.RoleSlave {
		c.refuse(h.XID, isSlave, msg)
		return nil
	}
	id := be.Uint32(msg[16:])
	switch typ := be.Uint32(msg[12:]); typ {
	case wire.ONFBundleAdd:
		if r := c.bundleAdd(h, id, msg[bundleAddFixed:]); r != nil {
			c.refuse(h.XID, *r, msg)
		}
	case wire.ONFBundleControl:
		what := be.Uint16(msg[20:])
		if r := c.bundleControl(id, what); r != nil {
			c.refuse(h.XID, *r, msg)
		} else {
			c.send(bundleReply(h.XID, id, what))
		}
	default:
		return fmt.Errorf("ONF's message of type %d: %w", typ, errGarbage)
	}
	return nil
}

// bundleAdd adds a message to a bundle. As in Open vSwitch, a message that is
// refused here is left out, and the bundle can be committed without it.
func (c *conn) bundleAdd(h wire.Header, id uint32, inner []byte) *Refusal {
	refusal := func(code uint16) *Refusal { r := bundleFailed(code); return &r }
	ih, err := wire.ParseHeader(inner)
	if err != nil || int(ih.Length) != len(inner) {
		return refusal(2308) // MSG_BAD_LEN
	}
	if ih.XID != h.XID {
		return refusal(codeBadXID)
	}
	b := c.bundles[id]
	if b == nil {
		b = &bundle{}
		c.bundles[id] = b
	}
	if b.closed {
		delete(c.bundles, id)
		return refusal(codeClosed)
	}
	m, err := decodeMod(ih, inner)
	if err != nil {
		return refusalOf(err)
	}
	m.InBundle = true
	if r := c.s.check(m, true); r != nil {
		return r
	}
	b.mods = append(b.mods, m)
	return nil
}

func (c *conn) bundleControl(id uint32, typ uint16) *Refusal {
	refusal := func(code uint16) *Refusal { r := bundleFailed(code); return &r }
	b := c.bundles[id]
	switch {
	case typ == wire.BundleOpenRequest && b != nil:
		return refusal(codeExists)
	case typ == wire.BundleOpenRequest:
		c.bundles[id] = &bundle{}
		return nil
	case b == nil:
		return refusal(codeBadID)
	}
	switch typ {
	case wire.BundleCloseRequest:
		b.closed = true
	case wire.BundleDiscardRequest:
		delete(c.bundles, id)
	case wire.BundleCommitRequest:
		delete(c.bundles, id)
		return c.commit(b)
	default:
		return refusal(2306) // BAD_TYPE
	}
	return nil
}

// commit carries out all messages of a bundle or none.
func (c *conn) commit(b *bundle) *Refusal {
	undos := make([]func(), 0, len(b.mods))
	removed := make([][]removedFlow, len(b.mods))
	for i, m := range b.mods {
		r := c.s.check(m, false)
		var undo func()
		if r == nil {
			undo, removed[i], r = c.s.apply(m)
		}
		if r != nil {
			for j := len(undos) - 1; j >= 0; j-- {
				undos[j]()
			}
			c.refuse(m.xid, *r, m.raw)
			failed := bundleFailed(codeMsgFailed)
			return &failed
		}
		undos = append(undos, undo)
	}
	c.s.counts.Bundles++
	for i, m := range b.mods {
		c.s.done(m, removed[i])
	}
	return nil
}
