package faults

import (
	"fmt"
	"strings"
	"time"

	"kvnet/integration/cluster"
)

// row is a line of the table.
type row struct {
	name           string
	loss           cluster.Loss
	differ         int
	verdict        *cluster.Verdict // nil: nobody judged
	notes          []string
	took           time.Duration
	err            error
	withoutTraffic bool
}

// String is the row as a line of the table.
func (r row) String() string {
	verdict := "ok"
	if r.err != nil {
		verdict = "FAILED"
	}
	lost, gap, differ, writers, refused := "-", "-", "-", "-", "-"
	if !r.withoutTraffic {
		lost, gap, differ = fmt.Sprint(r.loss.Lost), fmt.Sprint(r.loss.LongestGap.Round(time.Millisecond)), fmt.Sprint(r.differ)
	}
	if r.verdict != nil {
		writers, refused = fmt.Sprint(r.verdict.Writers()), fmt.Sprint(r.verdict.Refused)
	}
	return fmt.Sprintf("%-34s %-7s %5s %8s %6s %7s %7s %6s  %s", r.name, verdict, lost, gap, differ, writers, refused,
		r.took.Round(time.Second), strings.Join(r.notes, "; "))
}

func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %-7s %5s %8s %6s %7s %7s %6s  %s\n", "fault", "", "lost", "gap", "differ", "writers", "refused", "took", "notes")
	for _, r := range rows {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}
