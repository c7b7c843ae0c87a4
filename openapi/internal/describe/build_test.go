package describe

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The descriptions in the repository are those that the annotations give.
func TestTheDescriptionsAreGenerated(t *testing.T) {
	files, err := Build("../../../northbound/rest")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(documents) {
		t.Errorf("%d files were made, want %d", len(files), len(documents))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("openapi/%s is not what the annotations give: run make generate", name)
		}
	}
}
