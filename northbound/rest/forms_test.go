package rest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"kvnet/model"
	"kvnet/model/state"
)

func storedNetwork(id string, modified int64, name string) *model.Network {
	return &model.Network{Meta: model.Meta{Created: 1, Modified: modified}, ID: id, Name: name}
}

func applyNetwork(t *testing.T, db *state.DB, revision int64, id string, n *model.Network) {
	t.Helper()
	e := state.Event{Kind: model.KindNetwork, Key: id}
	if n != nil {
		e.Object = n
	}
	if err := db.Apply(revision, []state.Event{e}); err != nil {
		t.Fatal(err)
	}
}

// TestFormsFollowTheirObjects: a form is made once for each version of an object,
// and goes with it.
func TestFormsFollowTheirObjects(t *testing.T) {
	db := state.New()
	f := newForms(db)
	sub, _ := db.Subscribe()
	defer sub.Close()
	form := func() []byte {
		t.Helper()
		now := db.Snapshot()
		text, err := f.of(now, now.Network("n"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	applyNetwork(t, db, 2, "n", storedNetwork("n", 2, "first"))
	first := form()
	if again := form(); &again[0] != &first[0] {
		t.Error("the form was made twice")
	}
	old := db.Snapshot()
	applyNetwork(t, db, 3, "n", storedNetwork("n", 3, "second"))
	if text := string(form()); !strings.Contains(text, "second") {
		t.Errorf("after a change: %s", text)
	}
	if text, err := f.of(old, old.Network("n")); err != nil || !strings.Contains(string(text), "first") {
		t.Errorf("of the former snapshot: %s, %v", text, err)
	}
	form()
	applyNetwork(t, db, 4, "n", nil)
	_, changes := sub.Take()
	f.forget(changes)
	if len(f.kept) != 0 || f.size != 0 {
		t.Errorf("after the object has gone %d forms of %d bytes are kept", len(f.kept), f.size)
	}
	if _, err := f.of(old, old.Network("n")); err != nil || len(f.kept) != 0 {
		t.Errorf("a late reader left %d forms, %v", len(f.kept), err)
	}
}

// TestFormsShowWhatIsDecided: what the leader decides about an object is seen in it.
func TestFormsShowWhatIsDecided(t *testing.T) {
	db := state.New()
	f := newForms(db)
	r := &model.Router{Meta: model.Meta{Created: 1, Modified: 1}, Name: "r"}
	n := &model.Node{Meta: model.Meta{Created: 1, Modified: 1}, Hostname: "gw", Type: model.NodeGateway}
	if err := db.Replace(1, []model.Object{r, n}); err != nil {
		t.Fatal(err)
	}
	see := func(want ...string) {
		t.Helper()
		for _, k := range []model.Kind{model.KindRouter, model.KindNode} {
			text, err := f.list(db.Snapshot(), k)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), want[0]) {
				t.Errorf("%s, want it to have %s", text, want[0])
			}
			want = want[1:]
		}
	}
	see(`"name":"r"`, `"state":"INIT"`)
	see(`"name":"r"`, `"state":"INIT"`)
	if err := db.Apply(2, []state.Event{
		{Kind: model.KindRouterStatus, Key: "r", Object: &model.RouterStatus{Name: "r", Life: 1, Gateway: "gw"}},
		{Kind: model.KindNodeStatus, Key: "gw", Object: &model.NodeStatus{Hostname: "gw", Life: 1, State: model.NodeComplete}},
	}); err != nil {
		t.Fatal(err)
	}
	see(`"gateway":"gw"`, `"state":"COMPLETE"`)
}

// TestFormsAreBounded: what doesn't fit is made for each answer.
func TestFormsAreBounded(t *testing.T) {
	db := state.New()
	f := newForms(db)
	var objects []model.Object
	for i := range 9 {
		objects = append(objects, storedNetwork(fmt.Sprint("n", i), 1, "x"))
	}
	if err := db.Replace(1, objects); err != nil {
		t.Fatal(err)
	}
	one, err := f.of(db.Snapshot(), objects[0])
	if err != nil {
		t.Fatal(err)
	}
	f.limit = 3*len(one) + 1
	for range 2 {
		text, err := f.list(db.Snapshot(), model.KindNetwork)
		if err != nil || len(text) != 9*len(one)+len("[,,,,,,,,]") || len(f.kept) != 3 || len(f.last) != 0 || f.size != 3*len(one) {
			t.Fatalf("a list of %d bytes, %d forms and %d lists with %d bytes are kept, %v", len(text), len(f.kept), len(f.last), f.size, err)
		}
	}
}

// TestFormsOfReadersAndWriters has readers list while networks change.
func TestFormsOfReadersAndWriters(t *testing.T) {
	db := state.New()
	f := newForms(db)
	sub, _ := db.Subscribe()
	defer sub.Close()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				now := db.Snapshot()
				text, err := f.list(now, model.KindNetwork)
				if n := bytes.Count(text, []byte("networkId")); err != nil || n != now.Len(model.KindNetwork) {
					t.Errorf("%d forms of %d networks, %v", n, now.Len(model.KindNetwork), err)
					return
				}
				if name := fmt.Sprintf(`"name":"%d"`, now.Revision()); now.Revision() > 0 && !strings.Contains(string(text), name) {
					t.Errorf("%s is not of revision %d", text, now.Revision())
				}
			}
		})
	}
	for revision := int64(2); revision < 400; revision++ {
		id := fmt.Sprint("n", revision%7)
		events := []state.Event{{Kind: model.KindNetwork, Key: id}, {Kind: model.KindNetwork, Key: "last", Object: storedNetwork("last", revision, fmt.Sprint(revision))}}
		if revision%3 > 0 {
			events[0].Object = storedNetwork(id, revision, "x")
		}
		if err := db.Apply(revision, events); err != nil {
			t.Error(err)
		}
		if revision%5 == 0 {
			_, changes := sub.Take()
			f.forget(changes)
		}
	}
	close(stop)
	readers.Wait()
	_, changes := sub.Take()
	f.forget(changes)
	size := 0
	for _, l := range f.last {
		size += len(l.text)
	}
	for x, had := range f.kept {
		size += len(had.text)
		if db.Snapshot().Get(x.kind, x.key) != had.object {
			t.Errorf("an old form of %s is kept", x.key)
		}
	}
	if f.size != size {
		t.Errorf("%d bytes are kept, %d are counted", size, f.size)
	}
}
