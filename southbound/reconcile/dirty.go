package reconcile

// dirtyCells are the cells that may differ from what the switch has. Whether a cell
// is one of them says its own mark: the list may hold others too, which the next
// look leaves out. That makes marking cheap, and a list that was long once does not
// burden later changes.
type dirtyCells struct {
	list []*cell
	n    int // of those with the mark
}

func (d *dirtyCells) mark(c *cell) {
	if !c.dirty {
		c.dirty = true
		d.n++
	}
	if !c.listed {
		c.listed = true
		d.list = append(d.list, c)
	}
}

func (d *dirtyCells) clear(c *cell) {
	if c.dirty {
		c.dirty = false
		d.n--
	}
}

// all lists the cells with the mark. Marking and clearing don't change what was
// returned, up to the next call.
func (d *dirtyCells) all() []*cell {
	kept := make([]*cell, 0, d.n)
	for _, c := range d.list {
		if c.dirty {
			kept = append(kept, c)
		} else {
			c.listed = false
		}
	}
	d.list = kept
	return kept[:len(kept):len(kept)]
}
