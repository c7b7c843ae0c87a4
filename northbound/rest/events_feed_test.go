package rest

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/model"
	"kvnet/model/state"
)

// newTestFeed runs a feed on a state of its own.
func newTestFeed(t *testing.T, db *state.DB) *feed {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry(), "test")
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(db, newForms(db), EventLimits{}.withDefaults(), m, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	go f.run(ctx)
	t.Cleanup(func() {
		cancel()
		<-f.done
	})
	return f
}

// texts waits until the feed has reached the revision and returns the names of each
// batch since place.
func (f *feed) texts(t *testing.T, place uint64, revision int64) (out []string) {
	t.Helper()
	eventually(t, "the feed has reached the revision", func() bool { _, now := f.end(); return now == revision })
	for {
		b, _, lost := f.at(place)
		if lost {
			t.Fatalf("place %d is lost", place)
		}
		if b == nil {
			return out
		}
		var names []string
		for _, e := range b.events {
			names = append(names, strings.TrimPrefix(e.name, "KUBEVIRT_"))
		}
		out = append(out, strings.Join(names, " "))
		place++
	}
}

func apply(t *testing.T, db *state.DB, revision int64, objects ...model.Object) {
	t.Helper()
	var events []state.Event
	for _, o := range objects {
		*o.Stored() = model.Meta{Created: max(o.Stored().Created, 1), Modified: revision}
		events = append(events, state.Event{Kind: o.Kind(), Key: o.Key(), Object: o})
	}
	if err := db.Apply(revision, events); err != nil {
		t.Fatal(err)
	}
}

func complete(t *testing.T, revision int64, objects ...model.Object) *state.DB {
	t.Helper()
	db := state.New()
	if err := db.Replace(revision, objects); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestWhatIsDecidedIsPartOfItsObject(t *testing.T) {
	db := complete(t, 1)
	f := newTestFeed(t, db)
	<-f.begun
	place, _ := f.end()
	meta := model.Meta{Created: 2}
	peer := &model.PeerRouter{IP: netip.MustParseAddr("192.0.2.1")}
	apply(t, db, 2, &model.Router{Meta: meta, Name: "r1", Peer: peer}, &model.Node{Meta: meta, Hostname: "gw1", Type: model.NodeGateway})
	f.texts(t, place, 2)
	status := model.RouterStatus{Name: "r1", Life: 2, Gateway: "gw1", Zone: 1, PeerIP: peer.IP}
	apply(t, db, 3, &status)
	f.texts(t, place, 3)
	apply(t, db, 4, &model.NodeStatus{Hostname: "gw1", Life: 2, State: model.NodeComplete})
	f.texts(t, place, 4)
	hidden, learned := status, status
	hidden.Zone = 2 // nothing that clients see
	apply(t, db, 5, &hidden)
	f.texts(t, place, 5)
	learned.PeerMAC = model.MAC{2, 0, 0, 0, 0, 1}
	apply(t, db, 6, &learned)
	got := f.texts(t, place, 6)
	want := []string{"ROUTER_CREATED NODE_CREATED", "GATEWAY_NODE_ATTACHED ROUTER_UPDATED", "NODE_UPDATED NODE_COMPLETE",
		"PEER_ROUTER_MAC_RETRIEVED ROUTER_UPDATED"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A feed that comes late sees merged changes. They lead to the same state.
func TestMergedChangesMakeOneStep(t *testing.T) {
	gone := &model.Network{Meta: model.Meta{Created: 1, Modified: 1}, ID: "gone"}
	again := &model.Network{Meta: model.Meta{Created: 1, Modified: 1}, ID: "again"}
	prev := complete(t, 1, gone, again)
	next := complete(t, 4, &model.Network{Meta: model.Meta{Created: 4, Modified: 4}, ID: "again"},
		&model.Network{Meta: model.Meta{Created: 2, Modified: 3}, ID: "new"})
	var changes []model.Change
	for _, key := range []string{"gone", "again", "new", "short"} {
		changes = append(changes, model.Change{Kind: model.KindNetwork, Key: key}, model.Change{Kind: model.KindNetwork, Key: key})
	}
	var got []string
	for _, e := range describe(slog.New(slog.DiscardHandler), prev.Snapshot(), next.Snapshot(), changes) {
		key, _, _ := strings.Cut(strings.TrimPrefix(string(e.data), `{"kind":"network","key":"`), `"`)
		got = append(got, e.name+" "+key)
	}
	want := []string{"KUBEVIRT_NETWORK_REMOVED gone", "KUBEVIRT_NETWORK_REMOVED again", "KUBEVIRT_NETWORK_CREATED again", "KUBEVIRT_NETWORK_CREATED new"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestAStoreThatGoesBackMakesReadersListAnew(t *testing.T) {
	n := &model.Network{Meta: model.Meta{Created: 2, Modified: 2}, ID: "n"}
	db := complete(t, 10, n)
	f := newTestFeed(t, db)
	<-f.begun
	place, _ := f.end()
	if err := db.Replace(5, []model.Object{n}); err != nil {
		t.Fatal(err)
	}
	if got := f.texts(t, place, 5); !slices.Equal(got, []string{"RESYNC"}) {
		t.Errorf("readers get %q", got)
	}
	apply(t, db, 12, &model.Network{ID: "m"})
	f.texts(t, place, 12)
	for since, want := range map[int64]bool{5: false, 9: false, 10: true, 12: true, 13: false} {
		// 6 to 10 may be revisions of the time before.
		if _, _, ok := f.join(since); ok != want {
			t.Errorf("resume after %d: %t, want %t", since, ok, want)
		}
	}
}

func TestEventsAreHeldUpToALimitButTheNewestAlways(t *testing.T) {
	f := newTestFeed(t, state.New())
	f.keep = 10
	big := func(n int) []event { return []event{{"e", make([]byte, n)}, {"e", make([]byte, n)}} }
	f.made.Reset()
	for rev, held := range []int{0, 1, 2, 1, 1} {
		if rev == 0 {
			continue
		}
		f.add(int64(rev), big([]int{0, 2, 3, 100, 2}[rev]))
		if len(f.batches) != held {
			t.Errorf("after revision %d %d batches are held, want %d", rev, len(f.batches), held)
		}
	}
	if _, _, lost := f.at(0); !lost || f.floor != 3 || f.size != 4 {
		t.Errorf("lost %t, floor %d, size %d", lost, f.floor, f.size)
	}
	shared := make([]byte, 8)
	f.add(5, []event{{"a", shared}, {"b", shared}})
	if f.size != 8 {
		t.Errorf("data that events share counts %d bytes", f.size)
	}
}
