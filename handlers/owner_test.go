package handlers_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvnet/handlers"
	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/snat"
	"kvnet/model"
	"kvnet/southbound/flow"
)

func TestOwnersAreNamedByHandlerAndObject(t *testing.T) {
	for want, parts := range map[flow.Owner][]string{
		"snat/r1":                        {"r1"},
		"snat/r1/port/fa:16:3e:00:00:11": {"r1", "port", "fa:16:3e:00:00:11"},
		"snat/a%2Fb":                     {"a/b"},
		"snat/..%2Fx":                    {"../x"},
	} {
		if got := handlers.OwnerOf("snat", parts...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOwnersOfDifferentObjectsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "parts")
		got, ok := handlers.OwnerParts("snat", handlers.OwnerOf("snat", parts...))
		if !ok || !slices.Equal(got, parts) {
			t.Fatalf("%q became %q, %v", parts, got, ok)
		}
	})
}

func TestOtherOwnersHaveNoParts(t *testing.T) {
	for _, o := range []flow.Owner{"", "snat", "snatch/r1", "network/r1", "snat/%zz"} {
		if parts, ok := handlers.OwnerParts("snat", o); ok {
			t.Errorf("%s has parts %q", o, parts)
		}
	}
}

func TestAnOwnerBetweenTwoChangedObjectsIsFound(t *testing.T) {
	l := handlertest.New(t)
	l.Put(handlertest.Node(model.NodeGateway, "gw1", 1), handlertest.Router("r1", "net1"), handlertest.Port(0x11, "net1", "10.10.0.11", "c1"))
	l.Complete("r1", "gw1", 1)
	before := l.DB.Snapshot()
	sub, _ := l.DB.Subscribe()
	defer sub.Close()

	// The port and the router leave the network, and are seen together.
	l.Put(handlertest.Port(0x11, "net2", "10.10.0.11", "c1"))
	l.Put(handlertest.Router("r1"))
	after, changes := sub.Take()
	named := func(affected func(model.Change) []flow.Owner) bool {
		return slices.ContainsFunc(changes, func(c model.Change) bool {
			return slices.Contains(affected(c), flow.Owner("snat/r1/port/fa:16:3e:00:00:11"))
		})
	}
	h := snat.New()
	if !named(func(c model.Change) []flow.Owner { return handlers.Affected(h, before, after, c) }) {
		t.Error("the owner of the port is not named")
	}
	if named(func(c model.Change) []flow.Owner { return h.Affected(after, c) }) {
		t.Error("the snapshot after the changes would do: this test shows nothing")
	}
}
