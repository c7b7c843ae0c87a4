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
	verdict        cluster.Verdict
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
	notes := strings.Join(r.notes, "; ")
	if r.withoutTraffic {
		return fmt.Sprintf("%-34s %-7s %5s %8s %6s %7s %7s %6s  %s", r.name, verdict, "-", "-", "-", "-", "-", r.took.Round(time.Second), notes)
	}
	return fmt.Sprintf("%-34s %-7s %5d %8s %6d %7d %7d %6s  %s", r.name, verdict, r.loss.Lost, r.loss.LongestGap.Round(time.Millisecond),
		r.differ, r.verdict.Writers(), r.verdict.Refused, r.took.Round(time.Second), notes)
}

func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %-7s %5s %8s %6s %7s %7s %6s  %s\n", "fault", "", "lost", "gap", "differ", "writers", "refused", "took", "notes")
	for _, r := range rows {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}
