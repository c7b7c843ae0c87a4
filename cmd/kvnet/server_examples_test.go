package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// strict makes curl fail on answers that are errors.
const strict = `set -eu
curl() { command curl --fail-with-body "$@"; }
`

// shellBlocks are the blocks of a page that are marked as shell, joined: a page is
// one session.
func shellBlocks(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.TrimSpace(line) == "```sh":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			out.WriteString(line)
		}
	}
	if out.Len() == 0 {
		t.Fatalf("%s has no block that is marked as sh", page)
	}
	return out.String()
}

// TestExamplesOfThePages runs what the pages show against a live server. Every
// call must succeed.
func TestExamplesOfThePages(t *testing.T) {
	const shipped = "http://127.0.0.1:8181"
	for page, calls := range map[string]int{"README.md": 9, "docs/rest.md": 37} {
		t.Run(page, func(t *testing.T) {
			script := shellBlocks(t, page)
			if n := strings.Count(script, "$C "); n < calls || !strings.Contains(script, shipped) {
				t.Fatalf("%d calls are left of %d, to %s", n, calls, shipped)
			}
			c := start(t, t.TempDir())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-c", strict+strings.ReplaceAll(script, shipped, "http://"+c.restListen))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v after\n%s", err, out)
			}
		})
	}
}
