package gossip

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
)

// StoreMember is a server as a member of the store.
type StoreMember struct {
	Name string `json:"name"`
	// PeerURL is where the stores of the others reach its store.
	PeerURL string `json:"peerURL"`
}

// Plan says how a server begins: as one of those that found a cluster, or as one
// that joins a cluster.
type Plan struct {
	ClusterID string `json:"clusterID"`
	// Members are those that found the cluster, sorted by name. The first of
	// them made the plan.
	Members []StoreMember `json:"members,omitempty"`
	// Joining says that the cluster exists already; Ask are the names of its
	// live members, which can add this server.
	Joining bool     `json:"-"`
	Ask     []string `json:"-"`
}

func (p *Plan) founder() string { return p.Members[0].Name }

func (p *Plan) names() []string {
	var out []string
	for _, m := range p.Members {
		out = append(out, m.Name)
	}
	return out
}

func sortMembers(m []StoreMember) {
	slices.SortFunc(m, func(a, b StoreMember) int { return cmp.Compare(a.Name, b.Name) })
}

// check refuses a plan that no server would have made.
func (p *Plan) check() error {
	if p.ClusterID == "" || len(p.ClusterID) > 64 || !printable(p.ClusterID) {
		return errors.New("the plan has no proper cluster id")
	}
	if len(p.Members) == 0 || len(p.Members) > maxExpect {
		return fmt.Errorf("the plan has %d members", len(p.Members))
	}
	urls := map[string]string{}
	for i, m := range p.Members {
		if err := checkMember(m); err != nil {
			return err
		}
		if i > 0 && p.Members[i-1].Name >= m.Name {
			return errors.New("the plan's members are not sorted by name")
		}
		if other, ok := urls[m.PeerURL]; ok {
			return fmt.Errorf("servers %q and %q have the same peer URL %s", other, m.Name, m.PeerURL)
		}
		urls[m.PeerURL] = m.Name
	}
	return nil
}

func checkMember(m StoreMember) error {
	if err := checkName(m.Name); err != nil {
		return err
	}
	u, err := url.Parse(m.PeerURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(m.PeerURL) > maxMetaString {
		return fmt.Errorf("server %q: %q is no peer URL", m.Name, m.PeerURL)
	}
	return nil
}

// Record is what a server remembers of founding a cluster. It must be on disk
// before the server acts on it.
type Record struct {
	// Plan is the plan that this server has promised to follow.
	Plan *Plan `json:"plan,omitempty"`
	// Committed says that all of the plan's members have promised it, so that
	// the cluster exists.
	Committed bool `json:"committed,omitempty"`
	// Withdrawn are the cluster ids of plans that this server made and gave up,
	// the latest last.
	Withdrawn []string `json:"withdrawn,omitempty"`
}

// maxWithdrawn bounds Record.Withdrawn.
const maxWithdrawn = 64

// withdraw is the record after its plan, which this server made, was given up.
func (r Record) withdraw() Record {
	w := append(slices.Clone(r.Withdrawn), r.Plan.ClusterID)
	return Record{Withdrawn: w[max(0, len(w)-maxWithdrawn):]}
}

// Records keeps a Record durably.
type Records interface {
	// Load returns what was saved last; the zero Record if nothing was.
	Load() (Record, error)
	// Save returns when r is on disk.
	Save(r Record) error
}

// RecordFile keeps a Record in a file of this path.
type RecordFile string

// Load reads the file.
func (f RecordFile) Load() (Record, error) {
	b, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("read the plan of the cluster: %w", err)
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("read the plan of the cluster in %s: %w", f, err)
	}
	if r.Plan != nil {
		if err := r.Plan.check(); err != nil {
			return Record{}, fmt.Errorf("read the plan of the cluster in %s: %w", f, err)
		}
	}
	return r, nil
}

// Save replaces the file.
func (f RecordFile) Save(r Record) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = writeFile(string(f), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the plan of the cluster: %w", err)
	}
	return nil
}
