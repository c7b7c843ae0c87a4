package gossip

import "time"

// State is what is known of a member.
type State uint8

// The states of a member.
const (
	// Alive members answer, or nothing else is known yet.
	Alive State = iota + 1
	// Failed members don't answer although they didn't take their leave.
	Failed
	// Left members took their leave.
	Left
)

// String returns "alive", "failed" or "left".
func (s State) String() string {
	switch s {
	case Alive:
		return "alive"
	case Failed:
		return "failed"
	case Left:
		return "left"
	}
	return "unknown"
}

// Member is a server as this one sees it.
type Member struct {
	Name string
	// Address is its gossip address, IP and port.
	Address string
	State   State
	// Since is when this server saw it enter State.
	Since time.Time
	Meta  Meta
}

// entry is a member with all that its state follows from.
type entry struct {
	Member
	listed  bool      // memberlist counts it as alive
	left    bool      // it took its leave
	refused time.Time // when nobody listened at its address; zero: not so
}

// state is the member's state as this server counts it. A leave is final for
// one life of a process. A refused connection outweighs what memberlist still
// believes.
func (e *entry) state() State {
	switch {
	case e.left:
		return Left
	case !e.listed || !e.refused.IsZero():
		return Failed
	}
	return Alive
}
