package handlers_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// source is all Go text below the root of the repository.
func source(t *testing.T, root string) string {
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDocumentsNameWhatExists(t *testing.T) {
	const root = ".."
	code := source(t, root)
	for file, names := range map[string]*regexp.Regexp{
		"docs/deviations.md": regexp.MustCompile("`(Test\\w+)`"),
		"docs/port-map.md":   regexp.MustCompile("`(?:[a-zA-Z]+\\.|\\(\\*[a-zA-Z]+\\)\\.)([A-Za-z]+)`"),
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		found := names.FindAllStringSubmatch(string(text), -1)
		if len(found) < 20 {
			t.Errorf("%s names %d functions", file, len(found))
		}
		for _, m := range found {
			if m[1] == "setRule" { // of ONOS
				continue
			}
			if !regexp.MustCompile(`func (\([^)]*\) )?`+m[1]+`\(`).MatchString(code) && !strings.Contains(code, "\t"+m[1]+" ") {
				t.Errorf("%s names %s, which is nowhere", file, m[0])
			}
		}
		paths := regexp.MustCompile("`((?:cmd|cluster|handlers|model|northbound|southbound|integration)/[\\w/.]+)`")
		for _, m := range paths.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names a path that is not there: %v", file, err)
			}
		}
	}
}
