package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a body. No body that means something is deeper
// than 5.
const maxDepth = 64

var byteOrderMark = []byte("\xef\xbb\xbf")

// firstValue returns the first JSON value of a body. As in ONOS a byte order mark
// before it and text after it are ignored.
func firstValue(body []byte) (json.RawMessage, error) {
	body = bytes.TrimPrefix(body, byteOrderMark)
	if i := bytes.IndexByte(body, 0); i >= 0 {
		return nil, badRequest("the body has a NUL byte at position %d", i)
	}
	if !utf8.Valid(body) {
		return nil, badRequest("the body is not valid UTF-8")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badRequest("the body is empty; a JSON object is needed")
	}
	if tooDeep(body) {
		return nil, badRequest("the body is nested deeper than %d levels", maxDepth)
	}
	if json.Valid(body) { // as nearly always
		return bytes.TrimSpace(body), nil
	}
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, badRequest("the body is not valid JSON: it ends too early")
		}
		return nil, badRequest("the body is not valid JSON: %s", err.Error())
	}
	return raw, nil
}

// tooDeep tells whether the brackets outside of texts are nested too deeply. It
// looks before anything recursive does.
func tooDeep(body []byte) bool {
	depth, inText, escaped := 0, false, false
	for _, b := range body {
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped = b == '\\'
			inText = b != '"'
		case b == '"':
			inText = true
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

// jsonKind names the kind of a raw value for sentences.
func jsonKind(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func isNull(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == 'n' }
