package openapi

import (
	"io"
	"testing"
)

// Each file of the page can be opened, and has a tag of its own.
func TestThePageIsWhole(t *testing.T) {
	seen := map[string]string{}
	for name := range types {
		f, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		n, err := io.Copy(io.Discard, f)
		if n == 0 || err != nil {
			t.Errorf("%s has %d bytes, error %v", name, n, err)
		}
		if other := seen[f.Tag]; other != "" {
			t.Errorf("%s and %s have the same tag", name, other)
		}
		seen[f.Tag] = name
		_ = f.Close()
	}
}
