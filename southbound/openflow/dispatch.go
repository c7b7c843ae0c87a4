package openflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kvnet/model"
	"kvnet/southbound/openflow/wire"
)

// stage is how far the handshake has come.
type stage int

const (
	stageHello stage = iota
	stageFeatures
	stagePorts
	stageRunning
	stageRefused
)

// check ends the session of what doesn't speak OpenFlow, by its first eight bytes.
func (s *Session) check(h wire.Header) error {
	switch {
	case s.stage == stageHello && h.Type != wire.TypeHello:
		return fmt.Errorf("the switch began with a message of type %d instead of a hello", h.Type)
	case s.stage != stageHello && h.Version != wire.Version:
		return fmt.Errorf("the switch sent a message of OpenFlow version %d", h.Version)
	}
	return nil
}

// handle takes in one message. An error ends the session.
func (s *Session) handle(h wire.Header, msg []byte) error {
	if s.stage == stageHello {
		return s.handleHello(h, msg)
	}
	switch h.Type {
	case wire.TypeEchoRequest:
		s.sendUrgent(newMessage(wire.TypeEchoReply, h.XID, msg[wire.HeaderLen:]))
		return nil
	case wire.TypeError:
		return s.handleError(msg)
	}
	switch s.stage {
	case stageFeatures:
		if h.Type == wire.TypeFeaturesReply && h.XID == s.xid {
			return s.handleFeatures(msg)
		}
		return nil
	case stagePorts:
		// A port-status before the list of ports is in the list already.
		if h.Type == wire.TypeMultipartReply && h.XID == s.xid {
			return s.handlePortDesc(msg)
		}
		return nil
	}
	return s.handleRunning(h, msg)
}

func (s *Session) handleHello(h wire.Header, msg []byte) error {
	ok, err := wire.DecodeHello(msg)
	if err != nil {
		return err
	}
	if !ok {
		s.farewell(helloFailed(s.calls.newXID()))
		return fmt.Errorf("the switch doesn't speak OpenFlow 1.3 (its version is %d)", h.Version)
	}
	s.stage, s.xid = stageFeatures, s.calls.newXID()
	s.sendUrgent(newMessage(wire.TypeFeaturesRequest, s.xid, nil))
	return nil
}

func (s *Session) handleFeatures(msg []byte) error {
	f, err := wire.DecodeFeatures(msg)
	if err != nil {
		return err
	}
	if f.DPID == 0 || f.Auxiliary != 0 {
		return fmt.Errorf("connection with datapath id %d and auxiliary id %d", uint64(f.DPID), f.Auxiliary)
	}
	s.dpid = f.DPID
	old, err := s.srv.register(s)
	if err != nil {
		s.stage = stageRefused
		return err
	}
	s.log = s.log.With("switch", s.dpid.String())
	if old != nil {
		old.close(errors.New("the switch has made another connection"))
		if err := s.waitFor(old); err != nil {
			return err
		}
	}
	s.stage, s.xid = stagePorts, s.calls.newXID()
	s.sendUrgent(setConfig(s.calls.newXID()))
	s.sendUrgent(multipartRequest(s.xid, wire.MultipartPortDesc, nil))
	return nil
}

// waitFor waits until a session that is replaced has told everybody that it is
// over.
func (s *Session) waitFor(old *Session) error {
	t := time.NewTimer(s.cfg.HandshakeTimeout)
	defer t.Stop()
	select {
	case <-old.gone:
		// This one may have been replaced meanwhile. Its own successor waits for
		// it, and so for the whole chain.
		if s.ended() {
			return s.endErr
		}
		return nil
	case <-t.C:
		return fmt.Errorf("the connection that this one replaces didn't end within %s", s.cfg.HandshakeTimeout)
	}
}

func (s *Session) handlePortDesc(msg []byte) error {
	typ, more, body, err := wire.DecodeMultipart(msg)
	if err != nil {
		return err
	}
	if typ != wire.MultipartPortDesc {
		return fmt.Errorf("multipart reply of type %d to a request for the ports", typ)
	}
	ports, err := wire.DecodePorts(body)
	if err != nil {
		return err
	}
	for _, p := range ports {
		p.DPID = s.dpid
		s.ports[p.Number] = p
	}
	if more {
		return nil
	}
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	s.stage = stageRunning
	s.log.Info("switch connected", "ports", len(s.ports), "transport", s.transport())
	s.roles.mu.Lock()
	s.roles.portsKnown = true
	s.roles.mu.Unlock()
	s.requestRole()
	return nil
}

// portList lists the ports in the order of their numbers.
func (s *Session) portList() []model.SwitchPort {
	out := make([]model.SwitchPort, 0, len(s.ports))
	for _, n := range slices.Sorted(maps.Keys(s.ports)) {
		out = append(out, s.ports[n])
	}
	return out
}

func (s *Session) handleRunning(h wire.Header, msg []byte) error {
	switch h.Type {
	case wire.TypePacketIn:
		return s.handlePacketIn(msg)
	case wire.TypeFlowRemoved:
		return s.handleFlowRemoved(msg)
	case wire.TypePortStatus:
		return s.handlePortStatus(msg)
	case wire.TypeRoleReply:
		reply, err := wire.DecodeRoleReply(msg)
		if err != nil {
			return err
		}
		return s.roleReply(h.XID, reply)
	case wire.TypeMultipartReply:
		typ, more, body, err := wire.DecodeMultipart(msg)
		if err != nil {
			return err
		}
		s.calls.part(h, typ, more, body)
	case wire.TypeBarrierReply:
		s.calls.answer(h)
	case wire.TypeExperimenter:
		return s.handleExperimenter(h, msg)
	case wire.TypeEchoReply:
	default:
		s.log.Debug("message of an unknown type", "type", h.Type)
	}
	return nil
}

func (s *Session) handlePacketIn(msg []byte) error {
	if !s.master() {
		return nil
	}
	p, err := wire.DecodePacketIn(msg)
	if err != nil {
		return err
	}
	s.cfg.Events.PacketIn(s, p)
	return nil
}

func (s *Session) handleFlowRemoved(msg []byte) error {
	if !s.master() {
		return nil
	}
	f, err := wire.DecodeFlowRemoved(msg)
	if err != nil {
		return err
	}
	f.Rule.Switch = s.dpid
	s.cfg.Events.FlowRemoved(s, f)
	return nil
}

func (s *Session) handlePortStatus(msg []byte) error {
	st, err := wire.DecodePortStatus(msg)
	if err != nil {
		return err
	}
	p := st.Port
	p.DPID = s.dpid
	old, known := s.ports[p.Number]
	tell := s.roles.announced
	if st.Reason == wire.PortDeleted {
		delete(s.ports, p.Number)
		if tell {
			s.cfg.Observer.SwitchPortRemoved(s.dpid, p.Name, p.Number)
		}
		return nil
	}
	if known && old.Name != p.Name && tell {
		s.cfg.Observer.SwitchPortRemoved(s.dpid, old.Name, old.Number)
	}
	s.ports[p.Number] = p
	if tell {
		s.cfg.Observer.SwitchPortChanged(p)
	}
	return nil
}

func (s *Session) handleExperimenter(h wire.Header, msg []byte) error {
	e, err := wire.DecodeExperimenter(msg)
	switch {
	case err != nil:
		return err
	case e.RoleStatus != nil:
		s.deposed(*e.RoleStatus)
	case e.Bundle != nil:
		s.calls.bundleReply(h.XID)
	default:
		s.log.Debug("message of an unknown experimenter", "experimenter", e.Experimenter, "type", e.Type)
	}
	return nil
}

// handleError gives an error to whom it belongs.
func (s *Session) handleError(msg []byte) error {
	e, err := wire.DecodeError(msg)
	if err != nil {
		return err
	}
	if s.stage < stageRunning {
		return fmt.Errorf("the switch answered the handshake with an error: %s", e.Text())
	}
	if mine, err := s.roleRefused(e); mine {
		return err
	}
	if s.calls.refuse(e) || s.calls.finish(e.XID, &RefusedError{e.Type, e.Code, e.Text()}) {
		return nil
	}
	s.log.Warn("the switch refused a message", "error", e.Text(), "message", fmt.Sprintf("%x", e.Data[:min(len(e.Data), 64)]))
	if s.roles.announced {
		s.cfg.Observer.SwitchChanged(s.dpid, func(sw *model.Switch) { sw.LastError = e.Text() })
	}
	return nil
}
