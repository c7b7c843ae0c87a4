package rest

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"sync"

	"kvnet/model"
)

// encoder writes JSON as Jackson does: compact, in the order of the fields, and
// without escaping what HTML would need escaped.
type encoder struct {
	buffer bytes.Buffer
	json   *json.Encoder
}

// maxKept is the size of a buffer that is kept for the next answer. A short answer,
// which the outbox doesn't count, must not hold a large one.
const maxKept = freeAnswer

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.json = json.NewEncoder(&e.buffer)
	e.json.SetEscapeHTML(false)
	return e
}}

// encoded calls use with the JSON of v, which is gone afterwards.
func encoded(v any, use func(text []byte)) error {
	e := encoders.Get().(*encoder)
	defer func() {
		if e.buffer.Cap() <= maxKept {
			e.buffer.Reset()
			encoders.Put(e)
		}
	}()
	if err := e.json.Encode(v); err != nil {
		return err
	}
	use(bytes.TrimSuffix(e.buffer.Bytes(), []byte("\n")))
	return nil
}

// marshal is the JSON of v.
func marshal(v any) (text []byte, err error) {
	err = encoded(v, func(b []byte) { text = bytes.Clone(b) })
	return text, err
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
