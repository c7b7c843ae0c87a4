package golden

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rule is a rule as ovs-ofctl prints it, in a form in which the order of match
// fields, the cookie, flags and counters don't count. It is deliberately not
// made by kvnet's own parser, which is under test here.
type Rule struct {
	Table    int
	Priority int
	Match    []string // sorted
	Actions  string
}

// passedOver are words of a rule that say nothing about what it does.
var passedOver = []string{
	"cookie", "duration", "n_packets", "n_bytes", "idle_age", "hard_age",
	"send_flow_rem", "reset_counts", "no_packet_counts", "no_byte_counts",
}

// ParseRule reads a line of ovs-ofctl dump-flows or of expected-flows.txt.
func ParseRule(line string) (Rule, error) {
	r := Rule{Priority: 32768} // what ovs-ofctl leaves out
	match, actions, ok := strings.Cut(line, "actions=")
	if !ok {
		return r, fmt.Errorf("rule without actions: %q", line)
	}
	r.Actions = strings.TrimSpace(actions)
	for word := range strings.FieldsFuncSeq(match, func(c rune) bool { return c == ',' || c == ' ' }) {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch {
		case slices.Contains(passedOver, name):
		case name == "table":
			r.Table, err = strconv.Atoi(value)
		case name == "priority":
			r.Priority, err = strconv.Atoi(value)
		default:
			r.Match = append(r.Match, word)
		}
		if err != nil {
			return r, fmt.Errorf("rule %q: %w", line, err)
		}
	}
	slices.Sort(r.Match)
	return r, nil
}

// String writes the rule in ovs-ofctl's grammar, the same text for the same rule.
func (r Rule) String() string {
	words := append([]string{fmt.Sprintf("table=%d, priority=%d", r.Table, r.Priority)}, r.Match...)
	return strings.Join(words, ",") + " actions=" + r.Actions
}

// field is the value of a match field.
func (r Rule) field(name string) (value string, ok bool) {
	for _, word := range r.Match {
		if v, found := strings.CutPrefix(word, name+"="); found {
			return v, true
		}
	}
	return "", false
}

// has tells whether a word of the match is there, for example "arp" or
// "arp_op=1".
func (r Rule) has(word string) bool { return slices.Contains(r.Match, word) }
