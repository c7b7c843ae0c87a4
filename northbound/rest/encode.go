package rest

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"

	"kvnet/model"
)

// marshal writes JSON as Jackson does: compact, in the order of the fields, and
// without escaping what HTML would need escaped.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func ptr[T any](v T) *T { return &v }

// upperMAC writes a MAC as ONOS does; nil for the absent one.
func upperMAC(m model.MAC) *string {
	if m.IsZero() {
		return nil
	}
	return ptr(strings.ToUpper(m.String()))
}

// addressText writes an address; nil for the absent one.
func addressText(a netip.Addr) *string {
	if !a.IsValid() {
		return nil
	}
	return ptr(a.String())
}

// textOrNil is nil for the empty text.
func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
