package flow_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvnet/southbound/flow"
)

func TestPortRangeInMasks(t *testing.T) {
	for _, c := range []struct {
		min, max uint16
		want     []flow.PortMask
	}{
		{80, 80, []flow.PortMask{{Value: 80, Mask: 0xffff}}},
		{65535, 65535, []flow.PortMask{{Value: 65535, Mask: 0xffff}}},
		{8080, 8090, []flow.PortMask{{Value: 8080, Mask: 0xfff8}, {Value: 8088, Mask: 0xfffe}, {Value: 8090, Mask: 0xffff}}},
		{0, 65535, []flow.PortMask{{}}},
		{1, 3, []flow.PortMask{{Value: 1, Mask: 0xffff}, {Value: 2, Mask: 0xfffe}}},
		{81, 80, nil},
	} {
		if got := flow.PortRange(c.min, c.max); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: got %v, want %v", c.min, c.max, got, c.want)
		}
	}
	if n := len(flow.PortRange(1, 65534)); n != 30 {
		t.Errorf("the worst range has %d masks, want 30", n)
	}
}

func TestMasksOfAPortRangeMatchItsPortsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		min := rapid.Uint16().Draw(t, "min")
		max := rapid.Uint16().Draw(t, "max")
		masks := flow.PortRange(min, max)
		for p := range 1 << 16 {
			matched := 0
			for _, m := range masks {
				if m.Value&^m.Mask != 0 {
					t.Fatalf("%v has bits outside of its mask", m)
				}
				if uint16(p)&m.Mask == m.Value {
					matched++
				}
			}
			want := 0
			if min <= uint16(p) && uint16(p) <= max {
				want = 1
			}
			if matched != want {
				t.Fatalf("%d to %d: port %d is matched by %d masks of %v", min, max, p, matched, masks)
			}
		}
	})
}
