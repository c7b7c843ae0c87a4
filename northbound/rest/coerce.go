package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// The coercions of scalars, as ONOS's codecs do them. Where the original would
// lose what the client meant (a text that is no number becomes 0) the value is
// refused instead: rows C4 and C5 of the quirks.

// text reads a text; numbers and booleans become text.
func (d *decoder) text(raw json.RawMessage, path string) (string, bool) {
	switch raw[0] {
	case '"':
		s := unquote(raw)
		if strings.IndexByte(s, 0) >= 0 {
			d.add("%s has a NUL character", path)
			return "", false
		}
		if hasLoneSurrogate(raw, s) {
			d.add("%s has half of a surrogate pair, which is no character", path)
			return "", false
		}
		return s, true
	case 't', 'f':
		return string(raw), true
	case '{', '[':
		d.add("%s is %s, a text is needed", path, jsonKind(raw))
		return "", false
	}
	return numberText(string(raw)), true
}

// hasLoneSurrogate tells whether decoding had to replace an escape that is no
// character. A replacement character that the client wrote itself is fine.
func hasLoneSurrogate(raw json.RawMessage, s string) bool {
	if !strings.ContainsRune(s, '\uFFFD') {
		return false
	}
	written := bytes.Count(raw, []byte("\uFFFD")) + bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
	return strings.Count(s, "\uFFFD") > written
}

// numberText writes a JSON number as Java does: integers as they are, others as
// the shortest decimal of the double.
func numberText(n string) string {
	if !strings.ContainsAny(n, ".eE") {
		if n == "-0" {
			return "0"
		}
		return n
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return n
	}
	if a := math.Abs(f); a != 0 && (a < 1e-3 || a >= 1e7) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		e, _ := strconv.Atoi(exponent)
		return mantissa + "E" + strconv.Itoa(e)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// integer reads a number of 32 bits. Fractions are cut off, numeric texts are
// read, booleans are 0 and 1.
func (d *decoder) integer(raw json.RawMessage, path string) (int32, bool) {
	written := string(raw)
	switch raw[0] {
	case '"':
		s, ok := d.text(raw, path)
		if !ok {
			return 0, false
		}
		written = strings.TrimSpace(s)
	case 't':
		return 1, true
	case 'f':
		return 0, true
	case '{', '[':
		d.add("%s is %s, a number is needed", path, jsonKind(raw))
		return 0, false
	}
	if strings.ContainsAny(written, "xXpP_") { // forms of Go, not of JSON
		d.add("%s %q is no number", path, shown(written))
		return 0, false
	}
	f, err := strconv.ParseFloat(written, 64)
	f = math.Trunc(f)
	if errors.Is(err, strconv.ErrSyntax) || math.IsNaN(f) {
		d.add("%s %q is no number", path, shown(written))
		return 0, false
	}
	if f < math.MinInt32 || f > math.MaxInt32 {
		d.add("%s %s is out of range: it must fit in 32 bits", path, shown(written))
		return 0, false
	}
	return int32(f), true
}

// boolean reads a truth value. Numbers count as "not zero", the texts "true" and
// "false" as what they say.
func (d *decoder) boolean(raw json.RawMessage, path string) (value, ok bool) {
	switch raw[0] {
	case 't', 'f':
		return raw[0] == 't', true
	case '{', '[':
		d.add("%s is %s, true or false is needed", path, jsonKind(raw))
		return false, false
	case '"':
		s, ok := d.text(raw, path)
		if !ok {
			return false, false
		}
		switch strings.TrimSpace(s) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
		d.add("%s %q is neither true nor false", path, shown(s))
		return false, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f != 0 || err != nil, true // a number beyond the range of doubles is not zero
}
