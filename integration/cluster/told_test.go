package cluster

import (
	"testing"
	"time"
)

func TestTold(t *testing.T) {
	const line = `time=2026-11-30T12:30:00.123Z level=WARN msg="a member has failed" member=s1 address=10.99.0.1:7946` + "\n"
	at, ok := told(line, "a member has failed", "s1")
	if want := time.Date(2026, 11, 30, 12, 30, 0, 123e6, time.UTC); !ok || !at.Equal(want) {
		t.Errorf("it is said at %s (%t), want %s", at, ok, want)
	}
	for _, c := range []struct{ line, message, member string }{
		{line, "a member has failed", "s2"}, {line, "a member has left", "s1"}, {"goroutine 1", "a member has failed", "s1"},
	} {
		if _, ok := told(c.line, c.message, c.member); ok {
			t.Errorf("%q says %q of %s", c.line, c.message, c.member)
		}
	}
}
