package main

import (
	"testing"
	"time"
)

func TestTheLeadGoesToWhoReachesMoreSwitchesForLong(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var r reach
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for i, step := range []struct {
		second   int
		own      int
		switches map[string]int
		want     string
	}{
		{0, 3, map[string]int{"b": 4, "c": 3}, ""},
		{9, 3, map[string]int{"b": 4, "c": 3}, ""},
		{10, 3, map[string]int{"b": 4, "c": 3}, "b"},
		{11, 4, map[string]int{"b": 4, "c": 3}, ""}, // no more than the leader
		{12, 3, map[string]int{"b": 4, "c": 5}, ""}, // both begin anew
		{22, 3, map[string]int{"b": 4, "c": 5}, "c"},
		{23, 3, map[string]int{"b": 5, "c": 5}, "b"},
		{24, 3, map[string]int{"c": 5}, "c"}, // b is gone
		{25, 3, map[string]int{"b": 9, "c": 5}, "c"},
	} {
		if got := r.better(step.own, step.switches, at(step.second)); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}
