package gossip

import "fmt"

// Refusal is why somebody is no member for this server.
type Refusal string

// The reasons for a refusal.
const (
	OtherCluster     Refusal = "cluster"  // it belongs to another cluster
	NameTaken        Refusal = "name"     // a live member has its name
	AddressTaken     Refusal = "address"  // a live member has its address
	OtherProtocol    Refusal = "protocol" // it speaks a version that this server doesn't know
	OtherKey         Refusal = "key"      // it has another gossip key, or none
	SessionForged    Refusal = "session"  // its session lacked the proof of the gossip key
	TooManyStrangers Refusal = "strangers"
)

// Refusals are all reasons for a refusal.
var Refusals = []Refusal{OtherCluster, NameTaken, AddressTaken, OtherProtocol, OtherKey, SessionForged, TooManyStrangers}

// RefusedError says who is refused and why.
type RefusedError struct {
	Name, Address string
	Reason        Refusal
	Text          string
}

// Error says who is refused and why.
func (e *RefusedError) Error() string {
	who := "a server"
	if e.Name != "" {
		who = fmt.Sprintf("server %q", e.Name)
	}
	if e.Address != "" {
		who += " at " + e.Address
	}
	return who + " is refused: " + e.Text
}

// applicant is a server that wants to be a member, as far as memberlist knows
// it.
type applicant struct {
	name, address            string
	meta                     []byte
	minProtocol, maxProtocol uint8
}

// admit decides whether a server may be a member beside this one, which calls
// itself self at address, and those in its view. Both sides of a connection ask
// this of each other, so both know the reason.
func admit(self, address, cluster string, view []Member, a applicant) error {
	refuse := func(r Refusal, format string, args ...any) error {
		return &RefusedError{Name: a.name, Address: a.address, Reason: r, Text: fmt.Sprintf(format, args...)}
	}
	if a.minProtocol > protocolVersion || a.maxProtocol < protocolVersion {
		return refuse(OtherProtocol, "it speaks the versions %d to %d of the protocol, this server speaks version %d",
			a.minProtocol, a.maxProtocol, protocolVersion)
	}
	if a.name == self {
		if address != "" && a.address != address {
			return refuse(NameTaken, "this server at %s has the same name; if it was there itself before, the others forget that within seconds", address)
		}
		return nil // news of this server, or of an earlier life of it
	}
	if err := checkName(a.name); err != nil {
		return refuse(OtherProtocol, "%v", err)
	}
	meta, err := decodeMeta(a.meta)
	if err != nil {
		return refuse(OtherProtocol, "%v", err)
	}
	if a.address == address {
		return refuse(AddressTaken, "it claims the address of this server")
	}
	for _, m := range view {
		switch {
		case m.State != Alive || m.Name == self:
		case m.Name == a.name && m.Address != a.address:
			return refuse(NameTaken, "the live member at %s has the same name", m.Address)
		case m.Name != a.name && m.Address == a.address:
			return refuse(AddressTaken, "the live member %q has the same address", m.Name)
		case cluster == "" && m.Name != a.name:
			cluster = m.Meta.ClusterID
		}
	}
	if meta.ClusterID != "" && cluster != "" && meta.ClusterID != cluster {
		return refuse(OtherCluster, "it belongs to the cluster %q, not to %q", meta.ClusterID, cluster)
	}
	return nil
}
