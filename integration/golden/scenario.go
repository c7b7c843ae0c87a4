package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
}

// State is what the switches hold.
type State map[model.DPID][]ovs.Flow

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
	if s.Expected, err = parseExpected(string(flows)); err != nil {
		return nil, fmt.Errorf("read expected-flows.txt of %s: %w", s.Folder, err)
	}
	return s, nil
}

// parseExpected reads blocks of "### step N op -- note", "## device" and rules. A
// line "# --- after …" begins the same step's state anew: the last block counts.
func parseExpected(text string) (map[int]State, error) {
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
			rule, err := ovs.ParseFlow(line)
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

// snatAddresses are the external addresses that any router of the scenario ever
// has.
func (s *Scenario) snatAddresses() map[string]bool {
	out := map[string]bool{}
	for _, step := range s.Steps {
		if external, ok := step.Router["external"].(map[string]any); ok {
			if ip, ok := external["ip"].(string); ok {
				out[ip] = true
			}
		}
	}
	return out
}
