package flow

import (
	"fmt"
	"strings"
)

// defaultPriority is the priority that ovs-ofctl leaves out of its lines.
const defaultPriority = 32768

// ParseRule reads what Rule.String writes, and lines of `ovs-ofctl dump-flows`,
// also with their cookie, counters and flags, which are passed over. Timeouts are
// refused, because a Rule can't say them.
func ParseRule(text string) (Rule, error) {
	r, err := parseRule(text)
	if err != nil {
		return Rule{}, fmt.Errorf("parse rule %q: %w", text, err)
	}
	return r, nil
}

func parseRule(text string) (Rule, error) {
	r := Rule{Priority: defaultPriority}
	before, after, err := cutActions(text)
	if err != nil {
		return r, err
	}
	words, err := split(before, true)
	if err != nil {
		return r, err
	}
	seen := map[string]bool{}
	for _, w := range words {
		name, value, has := strings.Cut(w, "=")
		if seen[name] {
			return r, fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		if err := r.parseWord(name, value, has); err != nil {
			return r, fmt.Errorf("%s: %w", w, err)
		}
	}
	r.Actions, r.Goto, err = parseInstructions(after)
	return r, err
}

// parseWord reads one word in front of the actions.
func (r *Rule) parseWord(name, value string, has bool) (err error) {
	switch name {
	case "cookie", "duration", "n_packets", "n_bytes", "idle_age", "hard_age":
		return nil
	case "send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts":
		return nil
	case "table":
		r.Table, err = number[uint8](value)
		return err
	case "priority":
		r.Priority, err = number[uint16](value)
		return err
	}
	if !has {
		return r.Match.parseShorthand(name)
	}
	return r.Match.parseField(name, value)
}

// parseInstructions reads actions and a last goto_table.
func parseInstructions(text string) (actions []Action, table uint8, err error) {
	words, err := split(text, false)
	if err != nil {
		return nil, 0, err
	}
	if len(words) == 1 && words[0] == "drop" {
		return nil, 0, nil
	}
	if len(words) == 0 {
		return nil, 0, fmt.Errorf("the actions are empty; no action is written drop")
	}
	for i, w := range words {
		if t, ok := strings.CutPrefix(w, "goto_table:"); ok {
			table, err = number[uint8](t)
			if err == nil && (table == 0 || i != len(words)-1) {
				err = fmt.Errorf("goto_table leads to another table than 0 and comes last")
			}
			if err != nil {
				return nil, 0, fmt.Errorf("%s: %w", w, err)
			}
			continue
		}
		a, err := parseAction(w)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", w, err)
		}
		actions = append(actions, a)
	}
	return actions, table, nil
}

// ParseGroup reads what Group.String writes, and lines of `ovs-ofctl
// dump-groups`, which leave out the weight 1 of a select group.
func ParseGroup(text string) (Group, error) {
	g, err := parseGroup(text)
	if err != nil {
		return Group{}, fmt.Errorf("parse group %q: %w", text, err)
	}
	return g, nil
}

func parseGroup(text string) (Group, error) {
	var g Group
	words, err := split(text, false)
	if err != nil {
		return g, err
	}
	hasID := false
	for len(words) > 0 {
		name, value, _ := strings.Cut(words[0], "=")
		switch name {
		case "group_id":
			hasID = true
			g.ID, err = number[uint32](value)
		case "type":
			g.Type, err = parseGroupType(value)
		case "bucket":
			n := bucketEnd(words)
			bucket := append([]string{value}, words[1:n]...)
			words = words[n:]
			var b Bucket
			if b, err = parseBucket(bucket, g.Type); err != nil {
				return g, fmt.Errorf("bucket %s: %w", strings.Join(bucket, ","), err)
			}
			g.Buckets = append(g.Buckets, b)
			continue
		default:
			err = fmt.Errorf("it is no part of a group that kvnet knows")
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", words[0], err)
		}
		words = words[1:]
	}
	if !hasID {
		return g, fmt.Errorf("group_id is missing")
	}
	return g, nil
}

// bucketEnd is the index of the word after the bucket that words begin with.
func bucketEnd(words []string) int {
	n := 1
	for n < len(words) && !strings.HasPrefix(words[n], "bucket=") {
		n++
	}
	return n
}

func parseGroupType(name string) (GroupType, error) {
	for t, n := range groupTypeNames {
		if n == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("it is no group type that kvnet uses")
}

func parseBucket(words []string, t GroupType) (Bucket, error) {
	var b Bucket
	if t == GroupSelect {
		b.Weight = 1
	}
	for i, w := range words {
		if first, ok := strings.CutPrefix(w, "actions="); ok {
			actions, table, err := parseInstructions(strings.Join(append([]string{first}, words[i+1:]...), ","))
			if err == nil && table != 0 {
				err = fmt.Errorf("a bucket can't go on in a table")
			}
			b.Actions = actions
			return b, err
		}
		v, ok := strings.CutPrefix(w, "weight:")
		if !ok {
			return b, fmt.Errorf("%s: it is no part of a bucket that kvnet knows", w)
		}
		var err error
		if b.Weight, err = number[uint16](v); err != nil {
			return b, fmt.Errorf("%s: %w", w, err)
		}
	}
	return b, fmt.Errorf("its actions are missing")
}
