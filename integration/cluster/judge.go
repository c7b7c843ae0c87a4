package cluster

import (
	"fmt"
	"strings"
	"time"

	"kvnet/integration/relay"
)

// Verdict says who wrote to the switches.
type Verdict struct {
	// Writes is the number of rules and groups that were written, Refused how many
	// of them took no effect: a switch has refused them, or their bundle was never
	// committed.
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
// has to be refused. What is in a bundle is written when that is committed.
//
// Servers that do without generation ids ask to be EQUAL before they write. They
// are held to the same: who has asked last may write, and nobody else.
func (c *Cluster) Judge(mark Mark) Verdict { return verdict(c.since(Mark{}, nil), mark.Time) }

func verdict(all []sent, from time.Time) Verdict {
	r := newReading(all)
	j := newJudge()
	pending := map[ref][]sent{} // of bundles that aren't committed yet
	var v Verdict
	for i, s := range all {
		j.follow(s)
		id, request, control := s.BundleControl()
		switch bundle := r.ref(i, id); {
		case control && request == relay.BundleCommit:
			for _, write := range pending[bundle] {
				v.count(j, write, s.Time, from, r.refused(i))
			}
			delete(pending, bundle)
		case s.BundleAdd && s.Writes():
			bundle = r.ref(i, s.BundleID())
			pending[bundle] = append(pending[bundle], s)
		case s.Writes():
			v.count(j, s, s.Time, from, r.refused(i))
		}
	}
	for _, writes := range pending {
		for _, write := range writes {
			v.count(j, write, write.Time, from, true)
		}
	}
	return v
}

// count judges a write that takes effect at a time, unless it is refused.
func (v *Verdict) count(j *judge, s sent, at, from time.Time, refused bool) {
	if at.Before(from) {
		return
	}
	v.Writes++
	if refused {
		v.Refused++
	} else if why := j.stranger(s); why != "" {
		v.Strangers = append(v.Strangers, fmt.Sprintf("%s: %s: %s", s.member.Name, why, s.Frame))
	}
}

// ref names a message or a bundle of one connection.
type ref struct {
	member     *Member
	name       string // of the switch
	connection int
	id         uint32 // transaction or bundle
}

// reading is what is known of a record before it is judged: the connection of each
// frame, and which messages switches have refused.
type reading struct {
	all         []sent
	connections []int
	errors      map[ref]bool
}

func newReading(all []sent) *reading {
	r := &reading{all: all, errors: map[ref]bool{}}
	last := map[ref]int{}
	for i, s := range all {
		peer := ref{member: s.member, name: s.Switch}
		if s.Type == relay.Hello && s.Direction == relay.ToServer {
			last[peer]++
		}
		r.connections = append(r.connections, last[peer])
		if s.Type == relay.Error && s.Direction == relay.ToServer {
			r.errors[r.ref(i, xid(s.Frame))] = true
		}
	}
	return r
}

func (r *reading) ref(i int, id uint32) ref {
	return ref{r.all[i].member, r.all[i].Switch, r.connections[i], id}
}

func (r *reading) refused(i int) bool { return r.errors[r.ref(i, xid(r.all[i].Frame))] }

// hold is which server a switch has made its MASTER last.
type hold struct {
	member     *Member
	generation uint64
}

// judge follows the roles.
type judge struct {
	masters map[string]hold               // by switch
	asked   map[string]map[*Member]uint64 // generation asked for, by switch
	equals  uint64                        // requests for EQUAL, which have no generation
}

func newJudge() *judge {
	return &judge{masters: map[string]hold{}, asked: map[string]map[*Member]uint64{}}
}

// follow takes a frame in, and tells whether it gives a server the right to write.
func (j *judge) follow(s sent) (granted bool) {
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
	case s.Direction == relay.ToSwitch && r == roleEqual:
		j.equals++
		asked[s.member] = j.equals
	case s.Direction == relay.ToSwitch:
		delete(asked, s.member)
	case r == roleMaster:
		j.masters[s.Switch] = hold{s.member, generation}
		return true
	case r == roleEqual:
		// Also the role of a connection that has asked for none yet.
		if generation, ok = asked[s.member]; ok {
			j.masters[s.Switch] = hold{s.member, generation}
		}
		return ok
	}
	return false
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
