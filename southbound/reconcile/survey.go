package reconcile

import (
	"encoding/binary"
	"slices"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/wire"
)

// survey counts what an adoption does on a switch that holds these rules and
// groups, and lists the groups to delete: those of others that no rule which
// stays leads to. Called with t.mu held.
func (t *target) survey(flows []openflow.FlowEntry, groups []openflow.GroupEntry, a Adoption) (AdoptView, []uint32) {
	v := AdoptView{DPID: t.dpid}
	wanted := t.wanted()
	for _, c := range wanted {
		if !c.have || c.dirty {
			v.Added++
		}
	}
	used := map[uint32]bool{}
	for i := range flows {
		f := &flows[i]
		if !a.matches(f.Cookie) {
			for _, id := range groupsOf(f) {
				used[id] = true
			}
			continue
		}
		v.Matched++
		if c := wanted[keyOf(f)]; c != nil {
			v.Replaced++
			if !c.have || c.dirty {
				v.Added--
			}
		}
	}
	v.Removed = v.Matched - v.Replaced
	if v.Matched == 0 {
		v.Added = 0 // nothing is done here
		return v, nil
	}
	useNested(used, groups)
	var unused []uint32
	for _, g := range groups {
		if !used[g.Group.ID] && !ownGroup(g.Group.ID) {
			unused = append(unused, g.Group.ID)
		}
	}
	slices.Sort(unused)
	v.Groups = len(unused)
	return v, unused
}

// keyOf is the key of a rule, also if kvnet can't read what the rule does.
func keyOf(f *openflow.FlowEntry) flow.Key {
	if f.DecodeErr == nil {
		return f.Rule.Key()
	}
	m, err := wire.DecodeMatch(f.MatchBytes)
	if err != nil {
		return flow.Key{} // kvnet has no such rule
	}
	return flow.Key{Table: f.Table, Priority: f.Priority, Match: m}
}

// useNested adds the groups that used groups and kvnet's own lead to.
func useNested(used map[uint32]bool, groups []openflow.GroupEntry) {
	for more := true; more; {
		more = false
		for _, g := range groups {
			if !used[g.Group.ID] && !ownGroup(g.Group.ID) {
				continue
			}
			for _, b := range g.Group.Buckets {
				for _, id := range groupsIn(b.Actions) {
					more = more || !used[id]
					used[id] = true
				}
			}
		}
	}
}

func groupsIn(actions []flow.Action) (ids []uint32) {
	for _, a := range actions {
		if g, ok := a.(flow.ToGroup); ok {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// groupAction is the head of an OFPAT_GROUP action: type 22, length 8.
const groupAction = 22<<16 | 8

// groupsOf lists the groups that a rule leads to. In a rule that kvnet can't read
// everything that looks like such an action counts, so that rather too many groups
// stay than too few.
func groupsOf(f *openflow.FlowEntry) (ids []uint32) {
	if f.DecodeErr == nil {
		return groupsIn(f.Rule.Actions)
	}
	for b := f.InstructionBytes; len(b) >= 8; b = b[4:] {
		if binary.BigEndian.Uint32(b) == groupAction {
			ids = append(ids, binary.BigEndian.Uint32(b[4:]))
		}
	}
	return ids
}
