package openflow

import (
	"fmt"
	"sync"
	"time"

	"kvnet/model"
	"kvnet/southbound/openflow/wire"
)

// roles is the state of a session's role. A connection is EQUAL until the switch
// has answered the first role request; that may write, so nothing is written
// before (see master).
type roles struct {
	mu         sync.Mutex
	portsKnown bool
	role       model.Role
	generation uint64

	wanted    Role      // of the newest request
	xid       uint32    // of the newest request; 0: none
	asked     time.Time // when; zero: it is answered
	probe     uint32    // transaction id of a question for the generation
	announced bool      // Observer knows the switch
}

// Role is the role that the switch has confirmed last, with the generation.
func (s *Session) Role() (model.Role, uint64) {
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	return s.roles.role, s.roles.generation
}

func (s *Session) ready() bool {
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	return s.roles.portsKnown && !s.ended()
}

// master tells whether this server may write: it still wants to be master, and
// the switch has confirmed that with the present generation.
func (s *Session) master() bool {
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	return s.roles.master()
}

func (r *roles) master() bool {
	return r.wanted.Master && r.role == model.RoleMaster && r.generation == r.wanted.Generation
}

func (r *roles) waitingSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// requestRole asks the switch for the server's present role, once its ports are
// known.
func (s *Session) requestRole() {
	r := &s.roles
	r.mu.Lock()
	defer r.mu.Unlock()
	// Read under the lock, so that the newest request is for the newest role.
	want := s.srv.role.Load()
	if !r.portsKnown || want == nil {
		return
	}
	r.wanted, r.xid, r.asked, r.probe = *want, s.calls.newXID(), time.Now(), 0
	s.sendRole(want.request(r.xid))
}

// roleReply takes in an answer to a role request. The answer to a request that a
// newer one has replaced tells the role, but settles nothing.
func (s *Session) roleReply(xid uint32, reply wire.RoleReply) error {
	r := &s.roles
	r.mu.Lock()
	if xid == r.probe && xid != 0 {
		r.probe, r.asked = 0, time.Time{}
		wanted := r.wanted
		r.generation = reply.Generation
		r.mu.Unlock()
		s.announce(fmt.Sprintf("the switch refused the role MASTER with generation %d: it knows generation %d", wanted.Generation, reply.Generation))
		s.cfg.Events.Stale(s, reply.Generation)
		return nil
	}
	r.take(reply)
	newest, wanted, role, master := xid == r.xid, r.wanted, r.role, r.master()
	if newest {
		r.asked = time.Time{}
	}
	r.mu.Unlock()
	switch {
	case !newest:
		return nil
	case wanted.Master && !master, !wanted.Master && role != model.RoleSlave:
		return fmt.Errorf("the switch answered a role request (%+v) with role %d, generation %d", wanted, reply.Role, reply.Generation)
	}
	s.announce("")
	if master {
		s.cfg.Events.MasterUp(s)
	}
	return nil
}

// roleRefused takes in an error about a role request. A connection whose SLAVE
// request was refused stays EQUAL and could write, so it is ended. If a MASTER
// request was refused as stale, the switch's generation is read.
func (s *Session) roleRefused(e wire.Error) (mine bool, err error) {
	r := &s.roles
	r.mu.Lock()
	wanted, newest, probe := r.wanted, e.XID == r.xid, e.XID == r.probe
	stale := newest && wanted.Master && e.Type == wire.ErrorRoleRequestFailed && e.Code == wire.CodeStale
	if stale {
		r.probe, r.asked = s.calls.newXID(), time.Now()
	}
	question := roleRequest(r.probe, wire.RoleNoChange, 0)
	r.mu.Unlock()
	switch {
	case e.XID == 0 || !newest && !probe:
		return false, nil
	case !stale:
		return true, fmt.Errorf("the switch refused a role request (%+v): %s", wanted, e.Text())
	}
	s.sendUrgent(question)
	return true, nil
}

// deposed takes in that the switch gave this connection another role by itself,
// because another server became its master.
func (s *Session) deposed(st wire.RoleReply) {
	r := &s.roles
	r.mu.Lock()
	// A request of ours with a newer generation may be on its way.
	stale := r.wanted.Master && int64(st.Generation-r.wanted.Generation) >= 0
	r.role, r.generation = st.ModelRole(), st.Generation
	r.mu.Unlock()
	s.announce(fmt.Sprintf("the switch made another server its master, with generation %d", st.Generation))
	if stale {
		s.cfg.Events.Stale(s, st.Generation)
	}
}

// announce tells Observer of the switch, or of what changed.
func (s *Session) announce(problem string) {
	role, generation := s.Role()
	if s.roles.announced {
		s.cfg.Observer.SwitchChanged(s.dpid, func(sw *model.Switch) {
			sw.Role, sw.Generation, sw.LastError = role, generation, problem
		})
		return
	}
	s.roles.announced = true
	sw := model.Switch{
		DPID: s.dpid, Address: s.RemoteAddr(), TLS: s.overTLS(), Connected: true, Role: role, Generation: generation,
		Since: time.Now(), LastError: problem,
	}
	s.cfg.Observer.SwitchConnected(sw, s.portList())
}
