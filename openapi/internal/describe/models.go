package describe

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/go-openapi/spec"
)

// completeModels says which members of an answer that is written as object{…} are
// there: all but those that the annotation calls optional.
func completeModels(op *spec.Operation) error {
	var optional []string
	if list, ok := op.Extensions["x-optional"].([]any); ok {
		for _, name := range list {
			optional = append(optional, name.(string))
		}
	}
	take(op, "x-optional")
	for _, r := range op.Responses.StatusCodeResponses {
		if r.Schema == nil || r.Schema.Ref.String() != "" {
			continue
		}
		for name := range r.Schema.Properties {
			if !slices.Contains(optional, name) {
				r.Schema.Required = append(r.Schema.Required, name)
			}
		}
		slices.Sort(r.Schema.Required)
	}
	return nil
}

var reference = regexp.MustCompile(`"#/definitions/([^"]+)"`)

// addModels adds the models that a document uses.
func addModels(doc *spec.Swagger, all spec.Definitions) error {
	for {
		content, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		before := len(doc.Definitions)
		for _, m := range reference.FindAllStringSubmatch(string(content), -1) {
			doc.Definitions[m[1]] = all[m[1]]
		}
		if len(doc.Definitions) == before {
			return nil
		}
	}
}
