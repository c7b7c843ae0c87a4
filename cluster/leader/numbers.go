package leader

import "kvnet/model/decide"

// numbers gives each object one number of a range. A number that was chosen stays
// the object's until it is seen stored: a write may be in force although it was
// answered with an error, or not be visible yet, and then nobody else may get it.
type numbers struct {
	*decide.Allocator
	chosen map[string]uint32 // by key of the object, not seen stored yet
}

func newNumbers(a *decide.Allocator) *numbers { return &numbers{a, map[string]uint32{}} }

// of gives out the number of one object.
func (n *numbers) of(key string) decide.Numbers { return numberOf{n, key} }

// stored says that what is stored speaks for itself, or that the object is gone.
func (n *numbers) stored(key string) {
	n.Free(n.chosen[key])
	delete(n.chosen, key)
}

type numberOf struct {
	n   *numbers
	key string
}

// Next implements decide.Numbers.
func (o numberOf) Next() (uint32, bool) {
	if x, ok := o.n.chosen[o.key]; ok {
		return x, true
	}
	x, ok := o.n.Allocator.Next()
	if ok {
		o.n.chosen[o.key] = x
	}
	return x, ok
}
