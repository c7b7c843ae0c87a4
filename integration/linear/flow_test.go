package linear

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// span is a time in which something happened to servers, in the history's time.
type span struct {
	name     string
	from, to time.Duration
}

// none is what happens between the faults.
const none = "nothing"

// flow tells, for each kind of fault and for the time between, how many operations
// the servers answered, and how long no write was acknowledged.
type flow struct {
	history []porcupine.Operation
	spans   []span
	end     time.Duration
}

// stillAfter is how long a write may take before the cluster is said to stand still.
const stillAfter = time.Second

type pace struct {
	times   int
	seconds float64
	answers int
	still   time.Duration
}

// at is what happened at a time.
func (f flow) at(t time.Duration) string {
	for _, s := range f.spans {
		if s.from <= t && t < s.to {
			return s.name
		}
	}
	return none
}

func (f flow) paces() map[string]*pace {
	paces := map[string]*pace{none: {times: 1, seconds: f.end.Seconds()}}
	for _, s := range f.spans {
		if paces[s.name] == nil {
			paces[s.name] = &pace{}
		}
		p := paces[s.name]
		p.times++
		took := (min(s.to, f.end) - s.from).Seconds() // the last is mended after the end
		p.seconds += took
		paces[none].seconds -= took
	}
	writes := []time.Duration{0, f.end}
	for _, o := range f.history {
		t := time.Duration(o.Return)
		if t >= f.end || o.Output.(Output).Outcome == Unknown {
			continue
		}
		paces[f.at(t)].answers++
		if o.Input.(Input).Kind != Read {
			writes = append(writes, t)
		}
	}
	slices.Sort(writes)
	for i := range writes[1:] {
		if gap := writes[i+1] - writes[i]; gap > stillAfter {
			// In the middle of it: the cause may have ended meanwhile.
			paces[f.at(writes[i]+gap/2)].still += gap
		}
	}
	return paces
}

func (f flow) String() string {
	paces := f.paces()
	names := make([]string, 0, len(paces))
	for n := range paces {
		names = append(names, n)
	}
	slices.Sort(names)
	var out strings.Builder
	fmt.Fprintf(&out, "%-26s %5s %8s %8s %9s %s\n", "what happens", "times", "seconds", "answers", "a second", "without a write for more than 1 s")
	var under, between pace
	for _, n := range names {
		p := paces[n]
		fmt.Fprintf(&out, "%-26s %5d %8.1f %8d %9.0f %s\n", n, p.times, p.seconds, p.answers, float64(p.answers)/max(p.seconds, 0.001), p.still.Round(100*time.Millisecond))
		sum := &under
		if n == none {
			sum = &between
		}
		sum.times, sum.seconds, sum.answers, sum.still = sum.times+p.times, sum.seconds+p.seconds, sum.answers+p.answers, sum.still+p.still
	}
	fmt.Fprintf(&out, "%d faults; %.0f answers a second under faults, %.0f between", under.times,
		float64(under.answers)/max(under.seconds, 0.001), float64(between.answers)/max(between.seconds, 0.001))
	return out.String()
}

func TestFlowTellsWhenTheClusterStandsStill(t *testing.T) {
	at := func(kind Kind, second float64) porcupine.Operation {
		ns := int64(second * float64(time.Second))
		return op(kind, "v", Done, ns, ns)
	}
	f := flow{
		history: []porcupine.Operation{
			at(Update, 0.5), at(Update, 1.4), at(Read, 3), at(Update, 6), at(Update, 6.9), at(Update, 7.8),
			op(Update, "v", Unknown, 0, int64(4*time.Second)), at(Read, 9), // the last after the end
		},
		spans: []span{{"pause", 2 * time.Second, 5 * time.Second}, {"kill", 7 * time.Second, 9 * time.Second}},
		end:   8 * time.Second,
	}
	paces := f.paces()
	if p := *paces["pause"]; p.times != 1 || p.seconds != 3 || p.answers != 1 || p.still != 4600*time.Millisecond {
		t.Errorf("pause: %+v", p)
	}
	if p := *paces["kill"]; p.seconds != 1 || p.answers != 1 {
		t.Errorf("kill, which lasts beyond the end: %+v", p)
	}
	if p := *paces[none]; p.seconds != 4 || p.answers != 4 || p.still != 0 {
		t.Errorf("between: %+v", p)
	}
}
