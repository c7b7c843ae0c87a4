package describe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"

	"github.com/go-openapi/spec"
	"github.com/swaggo/swag"
)

// Build makes the descriptions from the annotations of the package in a directory.
// They are returned by the name of their file.
func Build(directory string) (map[string][]byte, error) {
	p := swag.New(swag.SetDebugger(log.New(io.Discard, "", 0)), swag.SetStrict(true))
	// Calls that share a handler are annotated by comments of their own.
	p.ParseFuncBody = true
	if err := p.ParseAPI(directory, "doc.go", 1); err != nil {
		return nil, fmt.Errorf("read the annotations in %s: %w", directory, err)
	}
	read := p.GetSwagger()

	built := map[string]*spec.Swagger{}
	for _, d := range documents {
		built[d.file] = d.empty()
	}
	for path, item := range read.Paths.Paths {
		for method, op := range operations(&item) {
			if err := complete(method, op); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			d, under := documentOf(path, take(op, "x-added"))
			target := built[d.file].Paths.Paths
			into := target[under]
			*slot(&into, method) = op
			target[under] = into
		}
	}
	files := map[string][]byte{}
	for name, doc := range built {
		if err := addModels(doc, read.Definitions); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		content, err := write(doc)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[name] = content
	}
	return files, nil
}

// slot is where an item keeps the operation of a method.
func slot(item *spec.PathItem, method string) **spec.Operation {
	switch method {
	case http.MethodGet:
		return &item.Get
	case http.MethodPost:
		return &item.Post
	case http.MethodPut:
		return &item.Put
	case http.MethodDelete:
		return &item.Delete
	}
	panic("describe: no calls have the method " + method)
}

// methods are those that calls have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

// operations are those of an item, by method.
func operations(item *spec.PathItem) map[string]*spec.Operation {
	out := map[string]*spec.Operation{}
	for _, m := range methods {
		if op := *slot(item, m); op != nil {
			out[m] = op
		}
	}
	return out
}

// take tells whether an operation has an extension of ours, and removes it.
func take(op *spec.Operation, name string) bool {
	_, ok := op.Extensions[name]
	delete(op.Extensions, name)
	return ok
}

func write(doc *spec.Swagger) ([]byte, error) {
	for _, t := range tags {
		if usesTag(doc, t.Name) {
			doc.Tags = append(doc.Tags, t)
		}
	}
	content, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, content, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func usesTag(doc *spec.Swagger, name string) bool {
	for _, item := range doc.Paths.Paths {
		for _, op := range operations(&item) {
			if slices.Contains(op.Tags, name) {
				return true
			}
		}
	}
	return false
}
