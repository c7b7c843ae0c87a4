package bench

import (
	"testing"
	"time"
)

func TestQuantilesOfTimes(t *testing.T) {
	var x times
	for i := range 101 {
		x = append(x, time.Duration((i*37)%101)*time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 50 * time.Millisecond, 0.99: 99 * time.Millisecond, 1: 100 * time.Millisecond} {
		if got := x.at(q); got != want {
			t.Errorf("quantile %v is %s, want %s", q, got, want)
		}
	}
	if one := (times{time.Second}); one.best() != time.Second || one.at(1) != time.Second {
		t.Error("one duration is its own best and worst")
	}
}

func TestShortKeepsThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		123456 * time.Nanosecond:  "123µs",
		-123456 * time.Nanosecond: "-123µs",
		1234567890:                "1.23s",
		999:                       "999ns",
		0:                         "0s",
	} {
		if got := short(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}

func TestRatesAreComparedRoundByRound(t *testing.T) {
	slow, fast := rates{10, 100, 30}, rates{20, 200, 40}
	if got := slow.over(fast); got != 0.5 {
		t.Errorf("the ratio is %v", got)
	}
}
