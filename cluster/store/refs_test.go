package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/model"
)

func TestARouterWithAFloatingIPCannotBeDeleted(t *testing.T) {
	f := open(t, config(t))
	for _, o := range []model.Object{router("r1"), router("r1/x"), router("r2"), fip("f/1", "r1")} {
		f.at(f.Create(ctx(t), o))
	}
	_, err := f.Delete(ctx(t), model.KindRouter, "r1")
	wantErr(t, err, ErrInUse)
	if !strings.Contains(err.Error(), `"f/1"`) {
		t.Errorf("the error does not name the floating IP: %v", err)
	}
	// A name that begins like that of the router in use is another router's.
	f.at(f.Delete(ctx(t), model.KindRouter, "r1/x"))

	// A floating IP that moves frees the one router and binds the other.
	f.at(f.Update(ctx(t), model.KindFloatingIP, "f/1", func(o model.Object) (model.Object, error) {
		x := o.(*model.FloatingIP)
		x.RouterName = "r2"
		return x, nil
	}))
	f.at(f.Delete(ctx(t), model.KindRouter, "r1"))
	_, err = f.Delete(ctx(t), model.KindRouter, "r2")
	wantErr(t, err, ErrInUse)

	f.at(f.Delete(ctx(t), model.KindFloatingIP, "f/1"))
	f.at(f.Delete(ctx(t), model.KindRouter, "r2"))
	f.wantRefs()
}

func TestABridgeBelongsToOneNode(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Create(ctx(t), node("a", "of:00000000000000a1", "of:00000000000000a2")))
	for name, n := range map[string]*model.Node{
		"integration":                     node("b", "of:00000000000000a1", "of:00000000000000b2"),
		"tunnel":                          node("b", "of:00000000000000b1", "of:00000000000000a2"),
		"integration as tunnel":           node("b", "of:00000000000000b1", "of:00000000000000a1"),
		"the same id in another spelling": node("b", "of:A1", "of:b2"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Create(ctx(t), n)
			var taken *BridgeTakenError
			if !errors.As(err, &taken) || taken.Host != "a" {
				t.Fatalf("error %v", err)
			}
		})
	}
	// A refused node leaves nothing behind.
	if f.db.Snapshot().Node("b") != nil {
		t.Fatal("a refused node was stored")
	}
	f.at(f.Create(ctx(t), node("b", "of:00000000000000b1", "of:00000000000000b2")))
	_, err := f.Update(ctx(t), model.KindNode, "b", func(model.Object) (model.Object, error) {
		return node("b", "of:00000000000000b1", "of:00000000000000a2"), nil
	})
	var taken *BridgeTakenError
	if !errors.As(err, &taken) || taken.Host != "a" || taken.Bridge != "of:00000000000000a2" {
		t.Fatalf("error %v", err)
	}
	// A bridge that a node gives up is free.
	f.at(f.Update(ctx(t), model.KindNode, "a", func(model.Object) (model.Object, error) {
		return node("a", "of:00000000000000a1", "of:00000000000000a3"), nil
	}))
	f.at(f.Create(ctx(t), node("c", "of:00000000000000a2", "")))
	f.at(f.Delete(ctx(t), model.KindNode, "a"))
	f.at(f.Create(ctx(t), node("d", "of:00000000000000a1", "of:00000000000000a1")))
	f.wantRefs()
}

func TestBridgesMayChangeHandsInOneTransaction(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Put(ctx(t), []Write{{New: node("a", "of:1", "of:2")}, {New: node("b", "of:3", "of:4")}}))
	s := f.db.Snapshot()
	f.at(f.Put(ctx(t), []Write{
		{Old: s.Node("a"), New: node("a", "of:3", "of:4")},
		{Old: s.Node("b"), New: node("b", "of:1", "of:2")},
	}))
	f.wantRefs()
	s = f.db.Snapshot()
	f.at(f.Put(ctx(t), []Write{{Old: s.Node("a")}, {New: node("c", "of:3", "of:4")}}))
	f.wantRefs()

	_, err := f.Put(ctx(t), []Write{{New: node("x", "of:9", "")}, {New: node("y", "of:9", "")}})
	var taken *BridgeTakenError
	if !errors.As(err, &taken) || taken.Host != "x" {
		t.Fatalf("one bridge for two nodes in one transaction: %v", err)
	}
}

func TestPutIsAllOrNothing(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Put(ctx(t), []Write{{New: network("n1")}, {New: network("n2")}}))
	s := f.db.Snapshot()
	stale := s.Network("n1")
	f.at(f.Update(ctx(t), model.KindNetwork, "n1", func(o model.Object) (model.Object, error) {
		o.(*model.Network).MTU = 1
		return o, nil
	}))
	for name, c := range map[string]struct {
		writes []Write
		want   error
	}{
		"stale":              {[]Write{{New: network("n3")}, {Old: stale, New: network("n1")}}, ErrConflict},
		"stale delete":       {[]Write{{New: network("n3")}, {Old: stale}}, ErrConflict},
		"exists":             {[]Write{{New: network("n3")}, {New: network("n2")}}, ErrExists},
		"exists as conflict": {[]Write{{New: network("n3")}, {New: network("n2")}}, ErrConflict},
		"twice":              {[]Write{{New: network("n3")}, {New: network("n3")}}, nil},
		"nothing":            {[]Write{{New: network("n3")}, {}}, nil},
		"renamed":            {[]Write{{New: network("n3")}, {Old: s.Network("n2"), New: network("n4")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Put(ctx(t), c.writes)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if got, err := f.Get(ctx(t), model.KindNetwork, "n3"); !errors.Is(err, ErrNotFound) {
				t.Fatalf("half of it was stored: %v, %v", got, err)
			}
		})
	}
	f.at(f.Put(ctx(t), []Write{{Old: s.Network("n2")}, {New: network("n3")}}))
	if s := f.db.Snapshot(); s.Network("n2") != nil || s.Network("n3") == nil {
		t.Fatal("not carried out")
	}
	if rev, err := f.Put(ctx(t), nil); err != nil || rev == 0 {
		t.Fatalf("nothing to write: %d, %v", rev, err)
	}
}

// wantRefs compares the keys under ref/ with what the objects say.
func (f *fixture) wantRefs() {
	f.t.Helper()
	resp, err := f.client.Get(ctx(f.t), prefix, clientv3.WithPrefix())
	if err != nil {
		f.t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, kv := range resp.Kvs {
		c, kind, id, err := parseKey(string(kv.Key))
		if err != nil {
			f.t.Fatal(err)
		}
		switch c {
		case classRef:
			got[string(kv.Key)] = string(kv.Value)
		case classObject:
			obj, err := objectOf(kind, id, kv)
			if err != nil {
				f.t.Fatal(err)
			}
			for _, r := range refsOf(obj) {
				want[r.key] = r.value
			}
		}
	}
	if !maps.Equal(got, want) {
		f.t.Fatalf("keys under ref/\n got %v\nwant %v", got, want)
	}
}

func TestIndexKeysSayWhatTheObjectsSay(t *testing.T) {
	f := open(t, config(t))
	var writers sync.WaitGroup
	for g := range 8 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			id := func(s string) string { return fmt.Sprintf("%s%d", s, r.IntN(3)) }
			bridge := func() model.DeviceID { return model.DeviceID(fmt.Sprintf("of:%d", r.IntN(5))) }
			for range 100 {
				var err error
				switch r.IntN(7) {
				case 0:
					_, err = f.Create(ctx(t), router(id("r")))
				case 1:
					_, err = f.Delete(ctx(t), model.KindRouter, id("r"))
				case 2:
					_, err = f.Create(ctx(t), fip(id("f"), id("r")))
				case 3:
					_, err = f.Update(ctx(t), model.KindFloatingIP, id("f"), func(o model.Object) (model.Object, error) {
						o.(*model.FloatingIP).RouterName = id("r")
						return o, nil
					})
				case 4:
					_, err = f.Delete(ctx(t), []model.Kind{model.KindFloatingIP, model.KindNode}[r.IntN(2)], id("f"))
				case 5:
					_, err = f.Create(ctx(t), node(id("f"), bridge(), bridge()))
				case 6:
					key := id("f")
					_, err = f.Update(ctx(t), model.KindNode, key, func(model.Object) (model.Object, error) {
						return node(key, bridge(), bridge()), nil
					})
				}
				var taken *BridgeTakenError
				if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotFound) &&
					!errors.Is(err, ErrInUse) && !errors.As(err, &taken) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	f.wantRefs()
}
