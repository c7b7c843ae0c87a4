package linear

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is an operation on the router r.
func op(kind Kind, value string, outcome Outcome, from, to int64) porcupine.Operation {
	o := porcupine.Operation{Input: Input{Kind: kind, Key: "r", Value: value}, Output: Output{Outcome: outcome}, Call: from, Return: to}
	if kind == Read {
		o.Input = Input{Kind: Read, Key: "r", Consistent: true}
		o.Output = Output{Outcome: Done, Value: value}
	}
	return o
}

// of puts an operation on another router.
func of(key string, o porcupine.Operation) porcupine.Operation {
	in := o.Input.(Input)
	in.Key = key
	o.Input = in
	return o
}

func TestHistoriesThatFitNoRouterAreRefused(t *testing.T) {
	const end = 1000
	tests := map[string]struct {
		history []porcupine.Operation
		fits    bool
	}{
		"one after the other": {[]porcupine.Operation{
			op(Read, "", Done, 0, 1), op(Create, "a", Done, 2, 3), op(Read, "a", Done, 4, 5), op(Update, "b", Done, 6, 7),
			op(Read, "b", Done, 8, 9), op(Delete, "", Done, 10, 11), op(Read, "", Done, 12, 13)}, true},
		"a read of what has been replaced": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Done, 2, 3), op(Read, "a", Done, 4, 5)}, false},
		"a read of what is being replaced": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Done, 2, 5), op(Read, "a", Done, 3, 4)}, true},
		"back to the old value after the new one": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Done, 2, 9), op(Read, "b", Done, 3, 4), op(Read, "a", Done, 5, 6)}, false},
		"an acknowledged write is lost": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Read, "", Done, 2, 3)}, false},
		"created twice": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 5), op(Create, "b", Done, 1, 6)}, false},
		"the second creation is refused": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 5), op(Create, "b", Refused, 1, 6)}, true},
		"refused though there is none": {[]porcupine.Operation{op(Create, "a", Refused, 0, 1)}, false},
		"updated though there is none": {[]porcupine.Operation{op(Update, "a", Done, 0, 1)}, false},
		"deleted twice": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Delete, "", Done, 2, 5), op(Delete, "", Done, 3, 6)}, false},
		"an open write that never happens": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Delete, "", Unknown, 2, end), op(Read, "a", Done, 4, 5)}, true},
		"an open write that happens late": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Unknown, 2, end), op(Read, "a", Done, 4, 5), op(Read, "b", Done, 6, 7)}, true},
		"an open write that happens twice": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Unknown, 2, end), op(Read, "b", Done, 4, 5), op(Update, "c", Done, 6, 7), op(Read, "b", Done, 8, 9)}, false},
		"an open write that happens too early": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Read, "b", Done, 2, 3), op(Update, "b", Unknown, 4, end)}, false},
		"an open write that is seen, then unseen": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Unknown, 2, end), op(Read, "b", Done, 4, 5), op(Read, "a", Done, 6, 7)}, false},
		"an open creation that is seen, then unseen": {[]porcupine.Operation{
			op(Create, "a", Unknown, 0, end), op(Read, "a", Done, 2, 3), op(Read, "", Done, 4, 5)}, false},
		"an open creation that is unseen, then seen": {[]porcupine.Operation{
			op(Create, "a", Unknown, 0, end), op(Read, "", Done, 2, 3), op(Read, "a", Done, 4, 5)}, true},
		"an open deletion that is seen, then unseen": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Delete, "", Unknown, 2, end), op(Read, "", Done, 4, 5), op(Read, "a", Done, 6, 7)}, false},
		"an open creation is why another is refused": {[]porcupine.Operation{
			op(Create, "a", Unknown, 0, end), op(Create, "b", Refused, 2, 3), op(Update, "c", Done, 4, 5), op(Read, "c", Done, 6, 7)}, true},
		"an open deletion is why an update is refused": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Delete, "", Unknown, 2, end), op(Update, "b", Refused, 4, 5), op(Read, "", Done, 6, 7)}, true},
		"a refused update without any deletion": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Unknown, 2, end), op(Update, "c", Refused, 4, 5)}, false},
		"an acknowledged update is lost beside open ones": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Unknown, 2, end), op(Update, "c", Unknown, 2, end),
			op(Update, "d", Done, 4, 5), op(Read, "a", Done, 6, 7)}, false},
		"open ones replace an acknowledged update late": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), op(Update, "b", Unknown, 2, end), op(Update, "c", Unknown, 2, end),
			op(Update, "d", Done, 4, 5), op(Read, "c", Done, 6, 7), op(Read, "b", Done, 8, 9)}, true},
		"a refused update is seen": {[]porcupine.Operation{
			op(Update, "b", Refused, 0, 1), op(Create, "a", Done, 2, 3), op(Read, "b", Done, 4, 5)}, false},
		"two routers are apart": {[]porcupine.Operation{
			op(Create, "a", Done, 0, 1), of("other", op(Read, "", Done, 2, 3)), of("other", op(Create, "b", Done, 4, 5)), op(Read, "a", Done, 6, 7)}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Check(Of(test.history, true), time.Minute, "")
			if err != nil || len(r.Undecided) > 0 || (len(r.Violations) == 0) != test.fits {
				t.Errorf("%s, %v; want that it fits: %v", r, err, test.fits)
			}
			if porcupine.CheckOperations(Model, test.history) != test.fits {
				t.Errorf("unsettled and as one history: want that it fits: %v", test.fits)
			}
		})
	}
}

// Each kind of read is judged for itself, with all writes.
func TestOldPlainReadsAreNoFaultOfConsistentOnes(t *testing.T) {
	old := op(Read, "a", Done, 4, 5)
	old.Input = Input{Kind: Read, Key: "r"}
	history := []porcupine.Operation{op(Create, "a", Done, 0, 1), op(Update, "b", Done, 2, 3), old, op(Read, "b", Done, 6, 7)}
	for consistent, violations := range map[bool]int{true: 0, false: 1} {
		dir := t.TempDir()
		r, err := Check(Of(history, consistent), time.Minute, dir)
		if err != nil || len(r.Violations) != violations || r.Operations != 3 {
			t.Errorf("consistent=%v: %s, %v; want %d violations", consistent, r, err, violations)
		}
		if pictures, err := filepath.Glob(filepath.Join(dir, "r.html")); len(pictures) != violations {
			t.Errorf("consistent=%v: pictures %v, %v; want %d", consistent, pictures, err, violations)
		}
	}
}
