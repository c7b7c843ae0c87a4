package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// Failed tells when the first of the others has said in its log, after the mark,
// that the gossip counts a member as failed.
func (c *Cluster) Failed(mark Mark, m *Member) (at time.Time, err error) {
	for _, other := range c.Followers(m) {
		log, err := os.ReadFile(other.LogFile())
		if err != nil {
			return at, fmt.Errorf("read the log of %s: %w", other.Name, err)
		}
		for line := range bytes.Lines(log) {
			said, ok := told(string(line), "a member has failed", m.Name)
			// The log knows milliseconds only.
			if ok && !said.Before(mark.Time.Truncate(time.Millisecond)) && (at.IsZero() || said.Before(at)) {
				at = said
			}
		}
	}
	if at.IsZero() {
		return at, fmt.Errorf("no other server says that %s has failed", m.Name)
	}
	return at, nil
}

// told reads the time of a line of a log with that message about a member.
func told(line, message, member string) (time.Time, bool) {
	text, ok := strings.CutPrefix(line, "time=")
	if !ok || !strings.Contains(line, fmt.Sprintf("msg=%q", message)) || !strings.Contains(line, " member="+member+" ") {
		return time.Time{}, false
	}
	text, _, _ = strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}
