package ovs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Flow is a rule as ovs-ofctl prints it. It is deliberately not read by kvnet's
// own parser, which is under test here.
type Flow struct {
	Table    int
	Priority int
	Match    []string // sorted
	Actions  string

	// What String leaves out: it says nothing about what the rule does.
	Cookie   uint64
	Duration time.Duration
	Packets  uint64
}

// passedOver are words of a rule that are of no interest.
var passedOver = []string{
	"n_bytes", "idle_age", "hard_age",
	"send_flow_rem", "reset_counts", "no_packet_counts", "no_byte_counts",
}

// defaultPriority is the priority that ovs-ofctl leaves out.
const defaultPriority = 32768

// ParseFlow reads a line of ovs-ofctl dump-flows.
func ParseFlow(line string) (Flow, error) {
	f := Flow{Priority: defaultPriority}
	match, actions, ok := strings.Cut(line, "actions=")
	if !ok {
		return f, fmt.Errorf("rule without actions: %q", line)
	}
	f.Actions = strings.TrimSpace(actions)
	for word := range strings.FieldsFuncSeq(match, func(c rune) bool { return c == ',' || c == ' ' }) {
		if err := f.read(word); err != nil {
			return f, fmt.Errorf("rule %q: %w", line, err)
		}
	}
	slices.Sort(f.Match)
	return f, nil
}

func (f *Flow) read(word string) (err error) {
	name, value, _ := strings.Cut(word, "=")
	switch {
	case slices.Contains(passedOver, name):
	case name == "table":
		f.Table, err = strconv.Atoi(value)
	case name == "priority":
		f.Priority, err = strconv.Atoi(value)
	case name == "cookie":
		f.Cookie, err = strconv.ParseUint(value, 0, 64)
	case name == "duration":
		f.Duration, err = time.ParseDuration(value)
	case name == "n_packets":
		f.Packets, err = strconv.ParseUint(value, 10, 64)
	default:
		f.Match = append(f.Match, word)
	}
	return err
}

// String writes the rule in ovs-ofctl's grammar: the same text for rules that do
// the same, whatever the order of the match fields, cookie, flags and counters.
func (f Flow) String() string { return f.Key() + " actions=" + f.Actions }

// Key is the part of the text that tells the rules of a bridge apart.
func (f Flow) Key() string {
	words := append([]string{fmt.Sprintf("table=%d, priority=%d", f.Table, f.Priority)}, f.Match...)
	return strings.Join(words, ",")
}

// Field is the value of a match field.
func (f Flow) Field(name string) (value string, ok bool) {
	for _, word := range f.Match {
		if v, found := strings.CutPrefix(word, name+"="); found {
			return v, true
		}
	}
	return "", false
}

// Has tells whether a word of the match is there, for example "arp" or
// "arp_op=1".
func (f Flow) Has(word string) bool { return slices.Contains(f.Match, word) }
