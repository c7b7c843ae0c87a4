package linear

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
)

func TestAKeyIsReplacedWhenItIsUsedUp(t *testing.T) {
	k := NewKeys(2)
	first, _ := k.Begin(0, false)
	for range maxOperations - 1 {
		if key, ok := k.Begin(0, false); key != first || !ok {
			t.Fatalf("%v, %v", key, ok)
		}
	}
	if key, _ := k.Begin(0, false); key == first {
		t.Errorf("%s was given more than %d times", key.Name, maxOperations)
	}
	if n := k.Names(); len(n) != 3 {
		t.Errorf("%v; want the first of two slots replaced", n)
	}
}

// Under way or open: a key never has more writes than the check can bear.
func TestAKeyHasFewOpenWrites(t *testing.T) {
	k := NewKeys(1)
	var first *Key
	for range maxOpen {
		first, _ = k.Begin(0, true)
	}
	if key, ok := k.Begin(0, true); ok {
		t.Fatalf("another write of %s", key.Name)
	}
	if _, ok := k.Begin(0, false); !ok {
		t.Fatal("no read either")
	}
	k.Written(first, Done)
	k.Written(first, Unknown)
	if key, ok := k.Begin(0, true); key != first || !ok {
		t.Fatal("no other write though one was answered")
	}
	for range maxOpen - 1 {
		k.Written(first, Unknown)
	}
	if key, ok := k.Begin(0, true); key == first || !ok {
		t.Errorf("%v, %v; want a new key once %d writes are open", key, ok, maxOpen)
	}
}

// The worst that Keys allows: five clients whose operations overlap all the time,
// all open writes from the start, none of them ever seen, and no order that fits, so
// that all have to be tried.
func TestTheWorstKeyTakesFewSteps(t *testing.T) {
	const clients, end = 5, 10000
	var history []porcupine.Operation
	for i := range maxOpen {
		kind := []Kind{Create, Delete}[i%2]
		value := ""
		if kind == Create {
			value = fmt.Sprint("open", i)
		}
		history = append(history, op(kind, value, Unknown, int64(i), end))
	}
	for i := 0; len(history) < maxOperations-1; i++ {
		from := int64(10 * (i + 1))
		kind := []Kind{Update, Create, Delete}[i%3]
		outcome := Done
		value := ""
		if kind != Delete {
			value = fmt.Sprint("v", i)
		}
		history = append(history, op(kind, value, outcome, from, from+10*clients-1))
	}
	history = append(history, op(Read, "never written", Done, end-2, end-1))
	steps := 0
	counting := Model
	counting.Step = func(state, input, output any) (bool, any) {
		steps++
		return step(state, input, output)
	}
	if porcupine.CheckOperations(counting, Of(history, true)) {
		t.Error("it fits")
	}
	t.Logf("%d operations: %d steps", len(history), steps)
	if most := 1_000_000; steps > most {
		t.Errorf("%d steps, want %d at most", steps, most)
	}
}
