package flow

import (
	"fmt"
	"strings"
)

// split cuts text at commas (and white space, if blanks is set) that are neither
// quoted nor in parentheses. Empty pieces are left out.
func split(text string, blanks bool) ([]string, error) {
	var out []string
	depth, start := 0, 0
	cut := func(i int) {
		if p := strings.TrimSpace(text[start:i]); p != "" {
			out = append(out, p)
		}
		start = i + 1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			n, err := quoted(text[i:])
			if err != nil {
				return nil, err
			}
			i += n - 1
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("%q closes a parenthesis that is not open", text)
			}
		case depth == 0 && (c == ',' || blanks && (c == ' ' || c == '\t')):
			cut(i)
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("%q leaves a parenthesis open", text)
	}
	cut(len(text))
	return out, nil
}

// quoted is the length of the quoted text at the beginning of s.
func quoted(s string) (int, error) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("%q leaves a quotation open", s)
}

// cutActions cuts text at "actions=", where that begins a word outside of
// quotations.
func cutActions(text string) (before, actions string, err error) {
	const word = "actions="
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			n, err := quoted(text[i:])
			if err != nil {
				return "", "", err
			}
			i += n - 1
			continue
		}
		atWord := i == 0 || text[i-1] == ',' || text[i-1] == ' ' || text[i-1] == '\t'
		if atWord && strings.HasPrefix(text[i:], word) {
			return text[:i], text[i+len(word):], nil
		}
	}
	return "", "", fmt.Errorf("%q has no actions", text)
}
