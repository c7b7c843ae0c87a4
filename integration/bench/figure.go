package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// figure is one result: the ratio first, and what it was made of.
type figure struct {
	part    string // letter
	ratio   string
	details []string
}

func (f figure) print(w io.Writer) {
	fmt.Fprintf(w, "(%s) %s\n", f.part, f.ratio)
	for _, d := range f.details {
		fmt.Fprintf(w, "      %s\n", d)
	}
}

// times are durations of the same thing, again and again.
type times []time.Duration

func (t times) sorted() times {
	s := slices.Clone(t)
	slices.Sort(s)
	return s
}

// at is the quantile q of t, from 0 (the shortest) to 1; t is not empty.
func (t times) at(q float64) time.Duration {
	s := t.sorted()
	return s[int(q*float64(len(s)-1)+0.5)]
}

func (t times) best() time.Duration   { return t.at(0) }
func (t times) median() time.Duration { return t.at(0.5) }

// list shows all of t in the order in which they were measured.
func (t times) list() string {
	var s []string
	for _, d := range t {
		s = append(s, short(d))
	}
	return strings.Join(s, ", ")
}

// percentiles shows the middle and the slow end of t.
func (t times) percentiles() string {
	return fmt.Sprintf("p50 %s, p99 %s, slowest %s of %d", short(t.median()), short(t.at(0.99)), short(t.at(1)), len(t))
}

// short rounds d to three digits or so.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for abs := max(d, -d); abs/unit >= 1000; {
		unit *= 10
	}
	return d.Round(unit).String()
}

// over is the ratio of two durations.
func over(a, b time.Duration) float64 { return float64(a) / float64(b) }
