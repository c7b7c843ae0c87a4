package linear

import (
	"fmt"
	"sync"
)

const (
	// maxOperations are sent to one router, and maxOpen writes of one may be under
	// way or without a known outcome at a time.
	maxOperations = 60
	maxOpen       = 4
)

// Keys hands out routers to work on, so that the check of each takes little time,
// whatever happens to the servers.
//
// The check tries in which order the operations on one router may have happened.
// It can only choose among those that overlap: at any moment each client has one
// operation under way, and a write whose outcome is not known overlaps everything
// after it. With n operations, c clients and at most k such writes there are at most
// n·2^(c+k) sets of operations that may have happened by some moment, and c+k+1
// writes that may have been the last of a set; the check looks at no such pair twice.
// With 60 operations, 5 clients and 4 open writes these are 300,000 at the very worst,
// less than a second's work. A router that is used up is replaced by one with a new
// name.
type Keys struct {
	mu    sync.Mutex
	slots []*Key
	names []string
}

// Key is a router.
type Key struct {
	Name string

	operations int
	underWay   int // writes without an answer so far
	open       int // writes whose outcome will never be known
}

// NewKeys has n routers in use at a time.
func NewKeys(n int) *Keys {
	k := &Keys{slots: make([]*Key, n)}
	for i := range k.slots {
		k.slots[i] = k.fresh()
	}
	return k
}

func (k *Keys) fresh() *Key {
	key := &Key{Name: fmt.Sprint("linear-", len(k.names))}
	k.names = append(k.names, key.Name)
	return key
}

// Begin chooses the i-th of the routers in use for an operation. ok is false if it
// can't take another write now.
func (k *Keys) Begin(i int, write bool) (key *Key, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key = k.slots[i]
	if key.operations == maxOperations || key.open == maxOpen {
		key = k.fresh()
		k.slots[i] = key
	}
	if write {
		if key.underWay+key.open == maxOpen {
			return nil, false
		}
		key.underWay++
	}
	key.operations++
	return key, true
}

// Written says what came of a write.
func (k *Keys) Written(key *Key, o Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key.underWay--
	if o == Unknown {
		key.open++
	}
}

// Names are those of all routers so far.
func (k *Keys) Names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.names...)
}
