package linear

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"
)

// Settling open writes must change the answer of no check: neither find what isn't
// there nor hide what is.
func TestSettlingDoesntChangeWhatFits(t *testing.T) {
	fits, fitsNot := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		history := anyHistory(t)
		want := porcupine.CheckOperations(Model, history)
		settled := Of(history, true)
		if got := porcupine.CheckOperations(Model, settled); got != want {
			t.Fatalf("it fits: %v, settled: %v\n%v\n%v", want, got, texts(history), texts(settled))
		}
		if want {
			fits++
		} else {
			fitsNot++
		}
	})
	if fits == 0 || fitsNot == 0 {
		t.Errorf("%d histories fitted, %d didn't; want some of both", fits, fitsNot)
	}
}

// anyHistory is what clients of a router learned whose operations overlap by chance.
// Open writes may be carried out late or never, and one answer in some is wrong.
func anyHistory(t *rapid.T) []porcupine.Operation {
	const end = 1000
	n := rapid.IntRange(1, 9).Draw(t, "operations")
	wrong := rapid.IntRange(-8, n-1).Draw(t, "wrong") // negative: none
	var history []porcupine.Operation
	state := ""
	values := []string{""}
	for i := range n {
		kind := rapid.SampledFrom([]Kind{Read, Read, Create, Update, Update, Delete}).Draw(t, "kind")
		at := int64(10 * (i + 1))
		o := porcupine.Operation{
			Input: Input{Kind: kind, Key: "r", Consistent: kind == Read},
			Call:  at - rapid.Int64Range(0, 30).Draw(t, "before"), Return: at + rapid.Int64Range(0, 30).Draw(t, "after"),
		}
		in, out := o.Input.(Input), Output{Outcome: Done}
		if kind == Create || kind == Update {
			in.Value = fmt.Sprint("v", i)
			values = append(values, in.Value)
		}
		open := kind != Read && rapid.IntRange(0, 1).Draw(t, "open") == 1
		carriedOut := !open || rapid.Bool().Draw(t, "carried out")
		switch possible := (state == "") == (kind == Create); {
		case kind == Read:
			out.Value = state
		case !possible:
			out.Outcome = Refused
		case carriedOut:
			state = in.Value
		}
		if i == wrong && kind == Read {
			out.Value = rapid.SampledFrom(values).Draw(t, "value")
		} else if i == wrong && out.Outcome == Refused {
			out.Outcome = Done
		}
		if open {
			out, o.Return = Output{Outcome: Unknown}, end
		}
		o.Input, o.Output = in, out
		history = append(history, o)
	}
	return history
}

func texts(history []porcupine.Operation) (out []string) {
	for _, o := range history {
		out = append(out, fmt.Sprintf("%s [%d, %d]", describe(o.Input, o.Output), o.Call, o.Return))
	}
	return out
}
