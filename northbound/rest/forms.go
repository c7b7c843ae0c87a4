package rest

import (
	"sync"

	"kvnet/model"
	"kvnet/model/state"
)

// maxForms bounds the bytes of the forms that are kept.
const maxForms = 64 << 20

// forms keeps the JSON of objects that were read, so that each version of an object
// is encoded once. There is at most one form for each stored object: forget drops
// it when the object changes or goes. Beside them is the last list of each kind.
type forms struct {
	db    *state.DB
	limit int

	mu   sync.RWMutex
	kept map[subject]form
	last map[model.Kind]list
	size int
}

// list is the JSON of all objects of a kind, by key.
type list struct {
	version uint64 // of the tables that it is made of
	text    []byte
}

// seenIn are the tables that objects of a kind are shown from, beside their own.
var seenIn = map[model.Kind][]model.Kind{
	model.KindRouter: {model.KindRouterStatus, model.KindNode, model.KindNodeStatus},
	model.KindNode:   {model.KindNodeStatus},
}

// subject names a stored object.
type subject struct {
	kind model.Kind
	key  string
}

// form is the JSON of one version of an object.
type form struct {
	object model.Object
	beside beside
	text   []byte
}

// beside is what clients see of an object that does not stand in itself.
type beside struct {
	status  model.Object // what is decided about it
	gateway string       // of a router
}

func besideOf(db state.Snapshot, o model.Object) beside {
	switch x := o.(type) {
	case *model.Router:
		return beside{status: db.RouterStatus(x.Name), gateway: shownGateway(db, x)}
	case *model.Node:
		return beside{status: db.NodeStatus(x.Hostname)}
	}
	return beside{}
}

func newForms(db *state.DB) *forms {
	return &forms{db: db, limit: maxForms, kept: map[subject]form{}, last: map[model.Kind]list{}}
}

// of is the JSON of an object in a snapshot. It must not be changed.
func (f *forms) of(db state.Snapshot, o model.Object) ([]byte, error) {
	x, seen := subject{o.Kind(), o.Key()}, besideOf(db, o)
	f.mu.RLock()
	had, ok := f.kept[x]
	f.mu.RUnlock()
	if ok && had.object == o && had.beside == seen {
		return had.text, nil
	}
	text, err := marshal(encodeObject(db, o))
	if err != nil {
		return nil, err
	}
	f.keep(x, form{o, seen, text})
	if f.db.Snapshot().Get(x.kind, x.key) != o {
		// It has changed meanwhile, and forget may have been there already.
		f.drop(x, o)
	}
	return text, nil
}

// list is the JSON of all objects of a kind in a snapshot, by key. It must not be
// changed.
func (f *forms) list(db state.Snapshot, k model.Kind) ([]byte, error) {
	version := db.Version(k) // none of those that are added up ever falls
	for _, other := range seenIn[k] {
		version += db.Version(other)
	}
	f.mu.RLock()
	had, ok := f.last[k]
	f.mu.RUnlock()
	if ok && had.version == version {
		return had.text, nil
	}
	parts := make([][]byte, 0, db.Len(k))
	length := len("[]")
	for o := range db.Objects(k) {
		text, err := f.of(db, o)
		if err != nil {
			return nil, err
		}
		parts = append(parts, text)
		length += len(text) + len(",")
	}
	text := append(make([]byte, 0, length), '[')
	for i, p := range parts {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, p...)
	}
	text = append(text, ']')
	f.keepList(k, list{version, text})
	return text, nil
}

func (f *forms) keepList(k model.Kind, now list) {
	f.mu.Lock()
	defer f.mu.Unlock()
	had := f.last[k]
	if now.version < had.version {
		return
	}
	delete(f.last, k)
	f.size -= len(had.text)
	if size := f.size + len(now.text); size <= f.limit {
		f.last[k], f.size = now, size
	}
}

func (f *forms) keep(x subject, now form) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := f.size - len(f.kept[x].text) + len(now.text)
	if size <= f.limit {
		f.kept[x], f.size = now, size
	}
}

// forget drops what the changes have made old.
func (f *forms) forget(changes []model.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		x := subject{c.Kind, c.Key}
		if had, ok := f.kept[x]; ok && had.object != c.New {
			f.remove(x, had)
		}
	}
}

// drop drops a form if it is that of the object.
func (f *forms) drop(x subject, o model.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if had, ok := f.kept[x]; ok && had.object == o {
		f.remove(x, had)
	}
}

// remove is called with f.mu held.
func (f *forms) remove(x subject, had form) {
	delete(f.kept, x)
	f.size -= len(had.text)
}
