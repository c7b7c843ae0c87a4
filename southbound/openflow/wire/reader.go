package wire

import (
	"encoding/binary"
	"fmt"
)

// reader takes values from the front of b. The first take beyond the end sets
// err; from then on all values are zero and nothing is left.
type reader struct {
	b   []byte
	err error
}

// take returns the next n bytes, which alias the input; nil after an error.
func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b) {
		r.err = fmt.Errorf("%d bytes wanted, %d left: %w", n, len(r.b), ErrLength)
		r.b = nil
		return nil
	}
	t := r.b[:n]
	r.b = r.b[n:]
	return t
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) u8() uint8 {
	if t := r.take(1); t != nil {
		return t[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if t := r.take(2); t != nil {
		return binary.BigEndian.Uint16(t)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if t := r.take(4); t != nil {
		return binary.BigEndian.Uint32(t)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if t := r.take(8); t != nil {
		return binary.BigEndian.Uint64(t)
	}
	return 0
}

// sub returns a reader of the next n bytes.
func (r *reader) sub(n int) *reader { return &reader{b: r.take(n), err: r.err} }

// rest returns all that is left.
func (r *reader) rest() []byte { return r.take(len(r.b)) }

// more tells whether something is left to read.
func (r *reader) more() bool { return r.err == nil && len(r.b) > 0 }

// fail sets err unless an earlier one is set.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.b = nil
	}
}

// pad8 is how many bytes fill n up to a multiple of eight.
func pad8(n int) int { return -n & 7 }
