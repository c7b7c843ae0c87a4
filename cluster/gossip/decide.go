package gossip

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// waiting is why no cluster is founded yet. It is no trouble: time may mend it.
type waiting string

func (w waiting) Error() string { return string(w) }

// assembled returns the servers that shall found a cluster of expect, sorted by
// name, if exactly these are there. Servers that expect nobody only wait for a
// cluster and don't count.
func assembled(expect int, members []Member) ([]string, error) {
	var names []string
	for _, m := range alive(members) {
		switch {
		case m.Meta.HasData:
			return nil, fmt.Errorf("server %q has data already: no cluster is founded beside it", m.Name)
		case m.Meta.Expect == 0:
		case m.Meta.Expect != expect:
			return nil, fmt.Errorf("server %q expects %d servers, this one expects %d: no cluster is founded", m.Name, m.Meta.Expect, expect)
		default:
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) < expect:
		return nil, waiting(fmt.Sprintf("%d of %d servers are here: %s", len(names), expect, strings.Join(names, ", ")))
	case len(names) > expect:
		return nil, fmt.Errorf("%d servers are here and %d are expected: no cluster is founded among %s",
			len(names), expect, strings.Join(names, ", "))
	}
	return names, nil
}

// answer is what a server says when it is asked about founding a cluster.
type answer struct {
	Self      StoreMember `json:"self"`
	Expect    int         `json:"expect"`
	Plan      *Plan       `json:"plan,omitempty"`
	Committed bool        `json:"committed,omitempty"`
	// Sees are the servers that it counts as those that shall found the cluster.
	Sees []string `json:"sees"`
}

// decision is what the server with the lowest name does next.
type decision struct {
	propose *Plan // make everybody promise this plan, then commit it
	fresh   bool  // propose needs a cluster id of its own
	giveUp  bool  // withdraw the plan in the own record
	// stale are plans of this server that others must drop before propose:
	// cluster id by name of the server that holds it.
	stale map[string]string
}

// decide says how the server with the lowest name founds the cluster. rec is what
// it remembers, answers are those of all others that it is to be founded with.
//
// Whoever has promised a plan promises no other until the plan's founder has
// withdrawn it, and the founder commits only what all have promised. So two
// plans can't both be committed, whoever dies in between.
func decide(self StoreMember, expect int, rec Record, answers []answer) (decision, error) {
	all := []StoreMember{self}
	for _, a := range answers {
		all = append(all, a.Self)
	}
	sortMembers(all)
	next := &Plan{ClusterID: "new", Members: all}
	if err := next.check(); err != nil {
		return decision{}, err
	}
	here := next.names()
	for _, a := range answers {
		if a.Expect != expect {
			return decision{}, fmt.Errorf("server %q expects %d servers, this one expects %d", a.Self.Name, a.Expect, expect)
		}
		if !slices.Equal(a.Sees, here) {
			return decision{}, waiting(fmt.Sprintf("server %q has not met all of them yet; it sees %s", a.Self.Name, cmp.Or(strings.Join(a.Sees, ", "), "too few or too many")))
		}
		if a.Committed {
			return decision{}, waiting(fmt.Sprintf("server %q belongs to the cluster %q already", a.Self.Name, a.Plan.ClusterID))
		}
	}
	mine := rec.Plan
	if mine != nil && mine.founder() != self.Name {
		return decision{}, waiting(fmt.Sprintf("this server has promised the plan %q of server %q, which must withdraw it first", mine.ClusterID, mine.founder()))
	}
	if mine != nil && !slices.Equal(mine.Members, all) {
		return decision{giveUp: true}, nil
	}
	d := decision{propose: mine, stale: map[string]string{}}
	for _, a := range answers {
		q := a.Plan
		if q == nil {
			continue
		}
		if q.founder() != self.Name {
			return decision{}, waiting(fmt.Sprintf("server %q has promised the plan %q of server %q, which must withdraw it first", a.Self.Name, q.ClusterID, q.founder()))
		}
		same := slices.Equal(q.Members, all)
		switch {
		case d.propose != nil && d.propose.ClusterID == q.ClusterID:
		case d.propose == nil && same && !slices.Contains(rec.Withdrawn, q.ClusterID):
			d.propose = q // made by this server before it lost its memory
		case slices.Contains(rec.Withdrawn, q.ClusterID) || within(q.names(), here):
			// Given up, or known to be committed by none of its members.
			d.stale[a.Self.Name] = q.ClusterID
		default:
			return decision{}, fmt.Errorf("server %q has promised the plan %q for %s, which this server doesn't remember to have made: "+
				"start these servers, or remove the plan there", a.Self.Name, q.ClusterID, strings.Join(q.names(), ", "))
		}
	}
	if d.propose == nil {
		d.propose, d.fresh = next, true
	}
	return d, nil
}

// within says that every name of a is in b.
func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(n string) bool { return !slices.Contains(b, n) })
}

// promise says whether a server with the record rec may promise the plan p of
// server from.
func promise(self StoreMember, expect int, rec Record, from string, p *Plan) error {
	if err := p.check(); err != nil {
		return err
	}
	switch {
	case p.founder() != from:
		return fmt.Errorf("the plan is that of server %q", p.founder())
	case len(p.Members) != expect:
		return fmt.Errorf("the plan has %d members, this server expects %d", len(p.Members), expect)
	case !slices.Contains(p.Members, self):
		return fmt.Errorf("the plan doesn't name this server with the peer URL %s", self.PeerURL)
	case rec.Plan == nil:
		return nil
	case rec.Plan.ClusterID != p.ClusterID || !slices.Equal(rec.Plan.Members, p.Members):
		return fmt.Errorf("this server has promised the plan %q of server %q", rec.Plan.ClusterID, rec.Plan.founder())
	}
	return nil
}
