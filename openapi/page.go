package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"sync"

	swaggerui "github.com/swaggo/files/v2"
)

//go:embed page
var own embed.FS

// types are the files of the page with their content types. Nothing else is
// served.
var types = map[string]string{
	"index.html":                      "text/html; charset=utf-8",
	"page.js":                         "text/javascript; charset=utf-8",
	"page.css":                        "text/css; charset=utf-8",
	"swagger-ui-bundle.js":            "text/javascript; charset=utf-8",
	"swagger-ui-standalone-preset.js": "text/javascript; charset=utf-8",
	"swagger-ui.css":                  "text/css; charset=utf-8",
	"favicon-32x32.png":               "image/png",
}

// File is a file of the page.
type File struct {
	io.ReadSeekCloser
	// Type is its content type.
	Type string
	// Tag is different for different contents.
	Tag string
}

// Open opens a file of the page; the error is fs.ErrNotExist if there is none of
// this name.
func Open(name string) (*File, error) {
	typ, ok := types[name]
	if !ok {
		return nil, fmt.Errorf("file %q of the API's page: %w", name, fs.ErrNotExist)
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return &File{ReadSeekCloser: f, Type: typ, Tag: tags()[name]}, nil
}

// open opens one of our own files, or else one of Swagger UI's.
func open(name string) (io.ReadSeekCloser, error) {
	f, err := own.Open("page/" + name)
	if err != nil {
		f, err = swaggerui.FS.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("file %q of the API's page: %w", name, err)
	}
	return f.(io.ReadSeekCloser), nil // embedded files are
}

// tags are the hashes of all files, by name.
var tags = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for name := range types {
		f, err := open(name)
		if err != nil {
			panic("openapi: " + err.Error()) // the binary was built without it
		}
		h := sha256.New()
		_, _ = io.Copy(h, f) // memory can be read
		_ = f.Close()
		out[name] = hex.EncodeToString(h.Sum(nil)[:12])
	}
	return out
})
