package linear

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Result is what the check of a history says.
type Result struct {
	Keys, Operations int
	// Open are the writes among the operations whose outcome is not known.
	Open int
	// Violations are the keys whose operations have no order in which all answers
	// are right.
	Violations []string
	// Undecided are the keys for which the time was too short.
	Undecided []string
}

func (r Result) String() string {
	return fmt.Sprintf("%d operations on %d keys, outcome not known of %d: %d keys violated, %d undecided",
		r.Operations, r.Keys, r.Open, len(r.Violations), len(r.Undecided))
}

// Check holds the operations on each key against the model, at most limit long for
// each. It draws those that don't fit into dir, unless that is empty.
func Check(history []porcupine.Operation, limit time.Duration, dir string) (r Result, err error) {
	r.Operations = len(history)
	for _, o := range history {
		if o.Output.(Output).Outcome == Unknown {
			r.Open++
		}
	}
	for _, part := range byKey(history) {
		r.Keys++
		key := part[0].Input.(Input).Key
		switch porcupine.CheckOperationsTimeout(Model, part, limit) {
		case porcupine.Ok:
		case porcupine.Unknown:
			r.Undecided = append(r.Undecided, key)
		case porcupine.Illegal:
			r.Violations = append(r.Violations, key)
			if err := draw(part, limit, dir); err != nil {
				return r, fmt.Errorf("draw the operations on %s: %w", key, err)
			}
		}
	}
	slices.Sort(r.Violations)
	slices.Sort(r.Undecided)
	return r, nil
}

// draw makes a page that shows how far the operations on a key fit. To find that out
// takes longer than to find out whether all do.
func draw(part []porcupine.Operation, limit time.Duration, dir string) error {
	if dir == "" {
		return nil
	}
	_, info := porcupine.CheckOperationsVerbose(Model, part, limit)
	return porcupine.VisualizePath(Model, info, filepath.Join(dir, part[0].Input.(Input).Key+".html"))
}
