package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Kind is what an operation does.
type Kind int

// The operations on a router. Its description is the value that they are about.
const (
	Read Kind = iota
	Create
	Update
	Delete
)

func (k Kind) String() string { return [...]string{"read", "create", "update", "delete"}[k] }

// Input is an operation as a client asks for it.
type Input struct {
	Kind Kind
	// Key names the router.
	Key string
	// Value is what is written. No two writes have the same.
	Value string
	// Consistent is a read with consistent=true.
	Consistent bool
}

// Outcome is what came of an operation.
type Outcome int

// What can come of an operation.
const (
	// Unknown is a write that may or may not have been carried out, now or later.
	Unknown Outcome = iota
	// Done is an operation that was carried out.
	Done
	// Refused is a write that found a router where there must be none, or none.
	Refused
	// Void is an operation that has changed nothing and says nothing.
	Void
)

// Output is what a client learned.
type Output struct {
	Outcome Outcome
	// Value is what was read; empty: there is no router.
	Value string
}

// Model is one router. Its state is the description, which is empty while there is
// no router.
var Model = porcupine.Model{
	Partition:         byKey,
	Init:              func() any { return "" },
	Step:              step,
	DescribeOperation: describe,
}

func step(state, input, output any) (bool, any) {
	now, in, out := state.(string), input.(Input), output.(Output)
	if in.Kind == Read {
		return out.Value == now, now
	}
	// A new router needs that there is none, the others that there is one.
	possible := (now == "") == (in.Kind == Create)
	switch {
	case out.Outcome == Refused:
		return !possible, now
	case !possible:
		return out.Outcome == Unknown, now
	}
	return true, in.Value // that of a deletion is empty
}

// byKey makes a history of each router.
func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	var out [][]porcupine.Operation
	index := map[string]int{}
	for _, o := range history {
		key := o.Input.(Input).Key
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], o)
	}
	return out
}

func describe(input, output any) string {
	in, out := input.(Input), output.(Output)
	text := in.Kind.String()
	if in.Value != "" {
		text += " " + in.Value
	}
	switch {
	case in.Kind == Read && out.Value == "":
		return text + ": none"
	case in.Kind == Read:
		return text + ": " + out.Value
	case out.Outcome == Unknown:
		return text + ": not known"
	case out.Outcome == Refused:
		return text + ": refused"
	}
	return fmt.Sprint(text, ": done")
}
