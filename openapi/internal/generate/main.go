// Command generate writes the descriptions of kvnet's calls. It runs in the
// directory of package openapi.
package main

import (
	"fmt"
	"os"

	"kvnet/openapi/internal/describe"
)

func main() {
	files, err := describe.Build("../northbound/rest")
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(name, content, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate the descriptions of the calls:", err)
		os.Exit(1)
	}
}
