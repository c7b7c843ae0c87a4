package cluster

import (
	"encoding/binary"
	"slices"
	"time"

	"kvnet/integration/relay"
)

// Roles in a role message (OpenFlow 1.3.5, section 7.3.9).
const (
	roleEqual  = 1
	roleMaster = 2
)

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
// a server other than old that this is MASTER now or, for servers that do without
// generation ids, EQUAL. Switches that haven't are missing.
func (c *Cluster) Masters(mark Mark, old *Member) map[string]time.Duration {
	out := map[string]time.Duration{}
	j := newJudge()
	for _, s := range c.since(mark, isRole) {
		granted := j.follow(s)
		if _, known := out[s.Switch]; granted && s.member != old && !known {
			out[s.Switch] = s.Time.Sub(mark.Time)
		}
	}
	return out
}

func isRole(f relay.Frame) bool { return f.Type == relay.RoleRequest || f.Type == relay.RoleReply }

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
