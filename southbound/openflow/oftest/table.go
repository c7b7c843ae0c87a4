package oftest

import (
	"time"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

type flowKey struct {
	table    uint8
	priority uint16
	match    string
}

type flowEntry struct {
	rule                flow.Rule
	cookie              uint64
	flags               uint16
	match, instructions []byte
	since               time.Time
}

type groupEntry struct {
	group   flow.Group
	buckets []byte
	since   time.Time
}

// Reasons of a FLOW_REMOVED.
const (
	reasonDelete      uint8 = 2
	reasonGroupDelete uint8 = 3
)

const sendFlowRemoved = 1

// apply carries out m and returns how to undo it. s.mu is held. removed are the
// rules that went, for which controllers wait to be told until all is certain.
func (s *Switch) apply(m Mod) (undo func(), removed []removedFlow, refused *Refusal) {
	switch m.Type {
	case wire.TypeFlowMod:
		return s.applyFlow(m)
	case wire.TypeGroupMod:
		return s.applyGroup(m)
	}
	return func() {}, nil, nil
}

type removedFlow struct {
	entry  *flowEntry
	reason uint8
}

func (s *Switch) applyFlow(m Mod) (func(), []removedFlow, *Refusal) {
	key := flowKey{m.Rule.Table, m.Rule.Priority, string(m.match)}
	switch m.Command {
	case FlowAdd:
		for _, a := range m.Rule.Actions {
			if g, ok := a.(flow.ToGroup); ok {
				if _, ok := s.groups[g.ID]; !ok {
					return nil, nil, &Refusal{Type: 2, Code: 9} // BAD_ACTION/BAD_OUT_GROUP
				}
			}
		}
		old := s.flows[key]
		s.flows[key] = &flowEntry{m.Rule, m.Cookie, m.flags, m.match, m.instructions, time.Now()}
		return func() {
			if delete(s.flows, key); old != nil {
				s.flows[key] = old
			}
		}, nil, nil
	case FlowDeleteStrict:
		return s.removeWhere(reasonDelete, func(k flowKey, e *flowEntry) bool { return k == key && e.cookie&m.Mask == m.Cookie&m.Mask })
	case FlowDelete:
		return s.removeWhere(reasonDelete, func(k flowKey, e *flowEntry) bool {
			return (m.Rule.Table == wire.AllTables || k.table == m.Rule.Table) && e.cookie&m.Mask == m.Cookie&m.Mask
		})
	}
	return nil, nil, &Refusal{Type: 5, Code: 6} // FLOW_MOD_FAILED/BAD_COMMAND
}

func (s *Switch) removeWhere(reason uint8, which func(flowKey, *flowEntry) bool) (func(), []removedFlow, *Refusal) {
	var removed []removedFlow
	gone := map[flowKey]*flowEntry{}
	for k, e := range s.flows {
		if which(k, e) {
			gone[k] = e
			removed = append(removed, removedFlow{e, reason})
		}
	}
	for k := range gone {
		delete(s.flows, k)
	}
	return func() {
		for k, e := range gone {
			s.flows[k] = e
		}
	}, removed, nil
}

func (s *Switch) applyGroup(m Mod) (func(), []removedFlow, *Refusal) {
	id := m.Group.ID
	old, exists := s.groups[id]
	restore := func() {
		if delete(s.groups, id); exists {
			s.groups[id] = old
		}
	}
	switch m.Command {
	case GroupAdd:
		if exists {
			return nil, nil, &Refusal{Type: 6, Code: 0} // GROUP_MOD_FAILED/GROUP_EXISTS
		}
		s.groups[id] = groupEntry{m.Group, m.buckets, time.Now()}
		return restore, nil, nil
	case GroupModify:
		if !exists {
			return nil, nil, &Refusal{Type: 6, Code: 8} // GROUP_MOD_FAILED/UNKNOWN_GROUP
		}
		s.groups[id] = groupEntry{m.Group, m.buckets, old.since}
		return restore, nil, nil
	case GroupDelete:
		delete(s.groups, id)
		undoFlows, removed, _ := s.removeWhere(reasonGroupDelete, func(_ flowKey, e *flowEntry) bool {
			for _, a := range e.rule.Actions {
				if g, ok := a.(flow.ToGroup); ok && g.ID == id {
					return true
				}
			}
			return false
		})
		return func() { undoFlows(); restore() }, removed, nil
	}
	return nil, nil, &Refusal{Type: 6, Code: 11} // GROUP_MOD_FAILED/BAD_COMMAND
}

// done notes that m is carried out for good. s.mu is held.
func (s *Switch) done(m Mod, removed []removedFlow) {
	switch m.Type {
	case wire.TypeFlowMod:
		s.counts.FlowMods++
	case wire.TypeGroupMod:
		s.counts.GroupMods++
	case wire.TypePacketOut:
		s.counts.PacketOuts++
		s.packets = append(s.packets, m.Packet)
	}
	for _, r := range removed {
		s.tellRemoved(r.entry, r.reason)
	}
}

func (s *Switch) tellRemoved(e *flowEntry, reason uint8) {
	if e.flags&sendFlowRemoved != 0 {
		s.broadcast(false, flowRemoved(e, reason))
	}
}
