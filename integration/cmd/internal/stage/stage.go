// Package stage prints what a demo shows: numbered steps, commands and what was
// found right.
package stage

import (
	"fmt"
	"strings"
)

// Stage counts the steps of a demo.
type Stage struct{ step int }

// Say begins a step.
func (s *Stage) Say(title, text string) {
	s.step++
	fmt.Printf("\n%d. %s\n", s.step, title)
	if text = strings.Trim(text, "\n"); text != "" {
		fmt.Println(text)
	}
}

// OK says what has been found right.
func (*Stage) OK(format string, args ...any) {
	fmt.Printf("   ok: %s\n", fmt.Sprintf(format, args...))
}

// Command shows a command line that can be pasted into a shell.
func Command(name string, args ...string) {
	words := []string{name}
	for _, a := range args {
		words = append(words, quote(a))
	}
	fmt.Printf("   $ %s\n", strings.Join(words, " "))
}

func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,%+@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
