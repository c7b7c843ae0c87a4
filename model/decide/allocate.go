package decide

// Numbers gives out a free number; ok is false if there is none. *Allocator
// implements it.
type Numbers interface {
	Next() (n uint32, ok bool)
}

// Allocator gives out the lowest free number of a range. Callers report the
// numbers that are stored with Use and Free, so a number is given out again only
// after its holder is gone.
type Allocator struct {
	min, max uint32
	used     map[uint32]int
	low      uint32 // nothing below is free
}

// NewAllocator makes an allocator of the numbers from min to max.
func NewAllocator(min, max uint32) *Allocator {
	return &Allocator{min: min, max: max, used: map[uint32]int{}, low: min}
}

// Next returns the lowest free number and marks it used; ok is false if there is
// none.
func (a *Allocator) Next() (n uint32, ok bool) {
	for n := a.low; ; n++ {
		if n > a.max {
			a.low = n
			return 0, false
		}
		if a.used[n] == 0 {
			a.used[n] = 1
			a.low = n + 1
			return n, true
		}
		if n == a.max {
			return 0, false
		}
	}
}

// Use marks a stored number as used. Zero stands for none.
func (a *Allocator) Use(n uint32) {
	if n != 0 {
		a.used[n]++
	}
}

// Free says that one holder of the number is gone.
func (a *Allocator) Free(n uint32) {
	if n == 0 || a.used[n] == 0 {
		return
	}
	if a.used[n]--; a.used[n] == 0 {
		delete(a.used, n)
		if n >= a.min && n < a.low {
			a.low = n
		}
	}
}
