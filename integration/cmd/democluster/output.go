package main

import (
	"fmt"
	"strings"
)

// say begins a step.
func (d *demo) say(title, text string) {
	d.step++
	fmt.Printf("\n%d. %s\n", d.step, title)
	if text = strings.Trim(text, "\n"); text != "" {
		fmt.Println(text)
	}
}

// ok says what has been found right.
func (d *demo) ok(format string, args ...any) {
	fmt.Printf("   ok: %s\n", fmt.Sprintf(format, args...))
}

// command shows a command line that can be pasted into a shell.
func command(name string, args ...string) {
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
