package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kvnet/integration/ovs"
	"kvnet/model"
)

// Scenario is one recorded life.
type Scenario struct {
	Folder      string
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Handlers    []string `json:"handlers"`
	Steps       []Step   `json:"steps"`
	// Expected holds what the switches held after each step, by step number.
	Expected map[int]State `json:"-"`
}

// Step is one operation. Which of the fields are there depends on Op.
type Step struct {
	Op   string `json:"op"`
	Note string `json:"note"`

	ID    string            `json:"id"`
	Ports map[string]uint32 `json:"ports"`

	Hostname string `json:"hostname"`
	State    string `json:"state"`
	Name     string `json:"name"`
	MAC      string `json:"mac"`

	Node    map[string]any `json:"node"`
	Network map[string]any `json:"network"`
	Port    map[string]any `json:"port"`
	Router  map[string]any `json:"router"`
	LB      map[string]any `json:"lb"`
	FIP     map[string]any `json:"fip"`

	Up    bool   `json:"up"`
	Steps []Step `json:"steps"` // of a batch
}

// State is what the switches hold. A group stands among the rules (see
// groupRule).
type State map[model.DPID][]ovs.Flow

// groupTable is the table of the rules that stand for groups.
const groupTable = -1

// groupRule writes a group as a rule, so that one comparison does for both: its
// match is the group's name, what it does are its buckets.
func groupRule(g ovs.Group) ovs.Flow {
	return ovs.Flow{Table: groupTable, Match: []string{"group=" + g.ID}, Actions: g.Type + ": " + strings.Join(g.Buckets, " | ")}
}

// groupName matches how a recording names groups: "G(lb1#2)" is the second of
// balancer lb1. kvnet's balancers have one group for all their lives (row L-6), so
// only the balancer counts.
var groupName = regexp.MustCompile(`G\((.+?)#\d+\)`)

// Load reads the scenario in a folder.
func Load(folder string) (*Scenario, error) {
	s := &Scenario{Folder: filepath.Base(folder)}
	input, err := os.ReadFile(filepath.Join(folder, "input.json"))
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	if err := json.Unmarshal(input, s); err != nil {
		return nil, fmt.Errorf("decode %s: %w", folder, err)
	}
	flows, err := os.ReadFile(filepath.Join(folder, "expected-flows.txt"))
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	if s.Expected, err = parseExpected(string(flows), ovs.ParseFlow); err != nil {
		return nil, fmt.Errorf("read expected-flows.txt of %s: %w", s.Folder, err)
	}
	if err := s.loadGroups(folder); err != nil {
		return nil, fmt.Errorf("read expected-groups.txt of %s: %w", s.Folder, err)
	}
	return s, nil
}

// loadGroups adds the recorded groups to the expected states.
func (s *Scenario) loadGroups(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "expected-groups.txt"))
	if err != nil {
		return err
	}
	groups, err := parseExpected(string(text), func(line string) (ovs.Flow, error) {
		g, err := ovs.ParseGroup(line)
		return groupRule(g), err
	})
	if err != nil {
		return err
	}
	for step, state := range groups {
		for device, rules := range state {
			s.Expected[step][device] = append(s.Expected[step][device], rules...)
		}
	}
	return nil
}

// parseExpected reads blocks of "### step N op -- note", "## device" and rules. A
// line "# --- after …" begins the same step's state anew: the last block counts.
func parseExpected(text string, parse func(string) (ovs.Flow, error)) (map[int]State, error) {
	states := map[int]State{}
	step, device := 0, model.DPID(0)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "### step "):
			number, _, _ := strings.Cut(strings.TrimPrefix(line, "### step "), " ")
			n, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			step, device = n, 0
			states[step] = State{}
		case strings.HasPrefix(line, "# ---"):
			device = 0
			states[step] = State{}
		case strings.HasPrefix(line, "## "):
			id, err := model.ParseDPID(strings.TrimPrefix(line, "## "))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			device = id
		default:
			rule, err := parse(groupName.ReplaceAllString(line, "G($1)"))
			if err != nil {
				return nil, err
			}
			if device == 0 {
				return nil, fmt.Errorf("rule before any device: %q", line)
			}
			states[step][device] = append(states[step][device], rule)
		}
	}
	return states, nil
}

// addresses tell the ARP responders of SNAT, of VIPs and of floating IPs apart.
type addresses struct{ snat, vips map[string]bool }

// addresses are those that any router and balancer of the scenario ever has.
func (s *Scenario) addresses() addresses {
	a := addresses{map[string]bool{}, map[string]bool{}}
	a.add(s.Steps)
	return a
}

func (a addresses) add(steps []Step) {
	for _, step := range steps {
		if external, ok := step.Router["external"].(map[string]any); ok {
			a.snat[text(external, "ip")] = true
		}
		if step.LB != nil {
			a.vips[text(step.LB, "vip")] = true
		}
		a.add(step.Steps)
	}
}
