package rest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// TestPartsAreThoseOfTheStandardLibrary takes JSON apart and compares with what
// encoding/json finds in it.
func TestPartsAreThoseOfTheStandardLibrary(t *testing.T) {
	same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	for _, text := range []string{
		`{}`, ` { } `, `{"a":1}`, "{\r\n\t\"a\" : -1.5e3 , \"b\" : null }", `{"a":1,"a":{"a":2}}`,
		`{"a":"}\",{[","b\\":[1,[2,{"c":"]"}],"\\"],"\u00e4\"":true,"":false}`, `{"x":{"y":{}},"z":[]}`,
		`[]`, ` [ ] `, `[1]`, `[ 1 , "a,]" , [ [ ] , 2 ] , { "a" : [ "}" ] } , null ,true]`, `["\\","\"","\\\""]`,
	} {
		raw := json.RawMessage(text)
		if bytes.TrimSpace(raw)[0] == '[' {
			var want []json.RawMessage
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			got, err := elements(raw)
			if err != nil || !slices.EqualFunc(got, want, same) {
				t.Errorf("%s: %q, want %q, %v", text, got, want, err)
			}
			continue
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		members(raw, func(name string, value json.RawMessage) { got[name] = value })
		if !maps.EqualFunc(got, want, same) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
