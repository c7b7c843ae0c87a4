package rest

import (
	"encoding/json"
	"errors"
)

// maxElements bounds the lists of a body.
const maxElements = 100_000

// errTooMany says that a list has more than maxElements elements.
var errTooMany = errors.New("too many elements")

// members calls f for the members of an object, in the order in which they stand
// there. raw must be a valid object, as everything that firstValue has let pass.
func members(raw json.RawMessage, f func(name string, value json.RawMessage)) {
	w := walker{raw: raw}
	for w.enter(); !w.ends('}'); {
		name := unquote(w.value())
		w.blanks()
		w.at++ // the colon
		f(name, w.value())
	}
}

// elements returns the elements of a valid array.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	var out []json.RawMessage
	w := walker{raw: raw}
	for w.enter(); !w.ends(']'); {
		if len(out) == maxElements {
			return nil, errTooMany
		}
		out = append(out, w.value())
	}
	return out, nil
}

// unquote is the text that a JSON text stands for.
func unquote(raw json.RawMessage) string {
	inner := raw[1 : len(raw)-1]
	for _, b := range inner {
		if b == '\\' {
			var s string
			_ = json.Unmarshal(raw, &s) // it is valid
			return s
		}
	}
	return string(inner)
}

// walker takes valid JSON apart without looking at anything twice.
type walker struct {
	raw json.RawMessage
	at  int
}

func (w *walker) blanks() {
	for {
		switch w.raw[w.at] {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return
		}
	}
}

// enter goes past the bracket that an object or an array begins with.
func (w *walker) enter() {
	w.blanks()
	w.at++
}

// ends tells whether the bracket comes next, and goes past a comma.
func (w *walker) ends(bracket byte) bool {
	w.blanks()
	if w.raw[w.at] == ',' {
		w.at++
	}
	return w.raw[w.at] == bracket
}

// value goes past the next value and returns it.
func (w *walker) value() json.RawMessage {
	w.blanks()
	begin := w.at
	switch w.raw[w.at] {
	case '"':
		w.text()
	case '{', '[':
		w.nested()
	default:
		w.literal()
	}
	return w.raw[begin:w.at:w.at]
}

func (w *walker) text() {
	for w.at++; w.raw[w.at] != '"'; w.at++ {
		if w.raw[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
}

func (w *walker) nested() {
	for depth := 0; ; {
		switch w.raw[w.at] {
		case '"':
			w.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if w.at++; depth == 0 {
			return
		}
	}
}

// literal goes past a number, true, false or null.
func (w *walker) literal() {
	for ; w.at < len(w.raw); w.at++ {
		switch w.raw[w.at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return
		}
	}
}
