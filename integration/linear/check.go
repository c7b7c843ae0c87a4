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
	// Open are the writes among the operations that may have happened at any time
	// since they began, or never.
	Open int
	// MostOpen is how many of them are about one key, at most.
	MostOpen int
	// Violations are the keys whose operations have no order in which all answers
	// are right.
	Violations []string
	// Undecided are the keys for which the time was too short.
	Undecided []string
	// Longest is how long the check of one key has taken, at most.
	Longest time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("%d operations on %d keys, %d of them open (%d of one key at most): %d keys violated, %d undecided, longest check of a key %s",
		r.Operations, r.Keys, r.Open, r.MostOpen, len(r.Violations), len(r.Undecided), r.Longest.Round(time.Millisecond))
}

// Check holds the operations on each key against the model, at most limit long for
// each. It draws those that don't fit into dir, unless that is empty.
func Check(history []porcupine.Operation, limit time.Duration, dir string) (r Result, err error) {
	r.Operations = len(history)
	for _, part := range byKey(history) {
		r.Keys++
		key := part[0].Input.(Input).Key
		open := open(part)
		r.Open, r.MostOpen = r.Open+open, max(r.MostOpen, open)
		began := time.Now()
		result := porcupine.CheckOperationsTimeout(Model, part, limit)
		r.Longest = max(r.Longest, time.Since(began))
		switch result {
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

func open(history []porcupine.Operation) (n int) {
	for _, o := range history {
		if o.Output.(Output).Outcome == Unknown {
			n++
		}
	}
	return n
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
