package cluster

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvnet/integration/relay"
)

// roleMaster is MASTER in a role message (OpenFlow 1.3.5, section 7.3.9).
const roleMaster = 2

// role reads role and generation of a role request or reply.
func role(f relay.Frame) (role uint32, generation uint64, ok bool) {
	if f.Type != relay.RoleRequest && f.Type != relay.RoleReply || len(f.Bytes) < 24 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(f.Bytes[8:]), binary.BigEndian.Uint64(f.Bytes[16:]), true
}

func xid(f relay.Frame) uint32 { return binary.BigEndian.Uint32(f.Bytes[4:]) }

// Mark is a moment in the records of all relays.
type Mark struct {
	Time  time.Time
	marks map[*Member]relay.Mark
}

// Mark is the present moment.
func (c *Cluster) Mark() Mark {
	m := Mark{Time: time.Now(), marks: map[*Member]relay.Mark{}}
	for _, s := range c.Members {
		m.marks[s] = s.Relay.Mark()
	}
	return m
}

// sent is a frame and the server whose relay it went through.
type sent struct {
	relay.Frame
	member *Member
}

// since merges what all relays have recorded after the mark, in the order of time.
func (c *Cluster) since(mark Mark, keep func(relay.Frame) bool) []sent {
	var all []sent
	for _, m := range c.Members {
		for _, f := range m.Relay.Since(mark.marks[m], keep) {
			all = append(all, sent{f, m})
		}
	}
	slices.SortStableFunc(all, func(a, b sent) int { return a.Time.Compare(b.Time) })
	return all
}

// Writes are the rules and groups that any server has written after the mark.
func (c *Cluster) Writes(mark Mark) []relay.Frame {
	var frames []relay.Frame
	for _, s := range c.since(mark, relay.Frame.Writes) {
		frames = append(frames, s.Frame)
	}
	return frames
}

// Masters tells for each switch after what time since the mark it has first told
// a server other than old that this is MASTER now. Switches that haven't are
// missing.
func (c *Cluster) Masters(mark Mark, old *Member) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, s := range c.since(mark, func(f relay.Frame) bool { return f.Type == relay.RoleReply && f.Direction == relay.ToServer }) {
		r, _, ok := role(s.Frame)
		if _, known := out[s.Switch]; ok && r == roleMaster && s.member != old && !known {
			out[s.Switch] = s.Time.Sub(mark.Time)
		}
	}
	return out
}

// Terms is how often after the mark a switch has given MASTER to another server
// than before, the most of all switches.
func (c *Cluster) Terms(mark Mark) int {
	masters, changes := map[string]*Member{}, map[string]int{}
	for _, s := range c.since(Mark{}, func(f relay.Frame) bool { return f.Type == relay.RoleReply && f.Direction == relay.ToServer }) {
		if r, _, ok := role(s.Frame); !ok || r != roleMaster {
			continue
		}
		if before := masters[s.Switch]; before != nil && before != s.member && s.Time.After(mark.Time) {
			changes[s.Switch]++
		}
		masters[s.Switch] = s.member
	}
	most := 0
	for _, n := range changes {
		most = max(most, n)
	}
	return most
}

// Verdict says who wrote to the switches.
type Verdict struct {
	// Writes is the number of rules and groups that were written, Refused how many
	// of them a switch has refused.
	Writes, Refused int
	// Strangers are the writes that a switch has taken from a server that wasn't
	// its only MASTER at that time.
	Strangers []string
}

// Writers is how many servers a switch obeyed at once.
func (v Verdict) Writers() int {
	if len(v.Strangers) > 0 {
		return 2
	}
	return 1
}

// String shows the writes that should not have been.
func (v Verdict) String() string { return strings.Join(v.Strangers, "\n") }

// Judge follows the roles of all servers on all switches through the whole record
// and judges the writes after the mark. A server may write to a switch once it has
// asked to be its MASTER on the present connection, and until the switch has told
// another server of a later generation that it is MASTER. What it sends after that
// has to be refused.
func (c *Cluster) Judge(mark Mark) Verdict { return verdict(c.since(Mark{}, nil), mark.Time) }

func verdict(all []sent, from time.Time) Verdict {
	j := judge{masters: map[string]hold{}, asked: map[string]map[*Member]uint64{}}
	refused := refused(all)
	var v Verdict
	for _, s := range all {
		j.follow(s)
		if !s.Writes() || s.Time.Before(from) {
			continue
		}
		v.Writes++
		if refused[refusal{s.member, s.Switch, xid(s.Frame)}] {
			v.Refused++
			continue
		}
		if why := j.stranger(s); why != "" {
			v.Strangers = append(v.Strangers, fmt.Sprintf("%s: %s: %s", s.member.Name, why, s.Frame))
		}
	}
	return v
}

// hold is which server a switch has made its MASTER last.
type hold struct {
	member     *Member
	generation uint64
}

type refusal struct {
	member *Member
	name   string
	xid    uint32
}

type judge struct {
	masters map[string]hold               // by switch
	asked   map[string]map[*Member]uint64 // generation asked for, by switch
}

func (j *judge) follow(s sent) {
	asked := j.asked[s.Switch]
	if asked == nil {
		asked = map[*Member]uint64{}
		j.asked[s.Switch] = asked
	}
	r, generation, ok := role(s.Frame)
	switch {
	case s.Type == relay.Hello && s.Direction == relay.ToServer:
		delete(asked, s.member) // a new connection has no role
		if j.masters[s.Switch].member == s.member {
			j.masters[s.Switch] = hold{}
		}
	case !ok:
	case s.Direction == relay.ToSwitch && r == roleMaster:
		asked[s.member] = generation
	case s.Direction == relay.ToSwitch:
		delete(asked, s.member)
	case r == roleMaster:
		j.masters[s.Switch] = hold{s.member, generation}
	}
}

// stranger says why a server may not write; empty: it may.
func (j *judge) stranger(s sent) string {
	generation, asked := j.asked[s.Switch][s.member]
	master := j.masters[s.Switch]
	switch {
	case !asked:
		return "has not asked to be MASTER"
	case master.member != nil && master.member != s.member && master.generation > generation:
		return fmt.Sprintf("wrote under generation %#x while %s was MASTER under %#x", generation, master.member.Name, master.generation)
	}
	return ""
}

// refused are the writes that a switch has refused, by themselves or with the
// bundle that they are a part of. A write of a bundle that was never committed has
// no effect either.
func refused(all []sent) map[refusal]bool {
	errors := map[refusal]bool{}
	for _, s := range all {
		if s.Type == relay.Error && s.Direction == relay.ToServer {
			errors[refusal{s.member, s.Switch, xid(s.Frame)}] = true
		}
	}
	out := map[refusal]bool{}
	open := map[refusal][]refusal{} // by bundle: xid is its id
	giveUp := func(bundle refusal) {
		for _, write := range open[bundle] {
			out[write] = true
		}
		delete(open, bundle)
	}
	for _, s := range all {
		id, request, control := s.BundleControl()
		bundle, message := refusal{s.member, s.Switch, id}, refusal{s.member, s.Switch, xid(s.Frame)}
		switch {
		case control && request == relay.BundleCommit && !errors[message]:
			delete(open, bundle) // in force
		case control && (request == relay.BundleOpen || request == relay.BundleCommit):
			giveUp(bundle) // refused, or left open by an earlier connection
		case s.BundleAdd && s.Writes():
			bundle.xid = s.BundleID()
			open[bundle] = append(open[bundle], message)
		case s.Writes() && errors[message]:
			out[message] = true
		}
	}
	for bundle := range open {
		giveUp(bundle)
	}
	return out
}
