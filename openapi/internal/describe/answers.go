package describe

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-openapi/spec"
)

// sentences are the usual meanings of statuses.
var sentences = map[int]string{
	http.StatusBadRequest:            "the path, a parameter or the body can't be meant; the message names the field and the reason",
	http.StatusUnauthorized:          "the name or the password is missing or wrong",
	http.StatusForbidden:             "the account may read only",
	http.StatusNotFound:              "there is nothing of this name",
	http.StatusNotAcceptable:         "the Accept header excludes JSON",
	http.StatusConflict:              "others kept changing the same objects at the same time; nothing was stored",
	http.StatusRequestEntityTooLarge: "the body is longer than 4 MiB, or more than the store takes at once; nothing was stored",
	http.StatusUnsupportedMediaType:  "the content type of the body is not JSON",
	http.StatusServiceUnavailable:    "this server or its store can't serve at the moment; Retry-After says when to try again",
	http.StatusInsufficientStorage:   "the store has no space left; nothing was stored",
}

// complete adds to a call what follows from what its annotation says.
func complete(method string, op *spec.Operation) error {
	statuses := op.Responses.StatusCodeResponses
	var usual []int
	if take(op, "x-public") {
		op.Security = []map[string][]string{}
	} else {
		usual = append(usual, http.StatusUnauthorized, http.StatusServiceUnavailable)
		if method != http.MethodGet {
			usual = append(usual, http.StatusForbidden, http.StatusRequestEntityTooLarge)
		}
	}
	if slices.Equal(op.Produces, []string{jsonType}) {
		usual = append(usual, http.StatusNotAcceptable)
		op.Produces = nil // the document says it
	}
	if slices.Equal(op.Consumes, []string{jsonType}) {
		usual = append(usual, http.StatusUnsupportedMediaType)
		op.Consumes = nil
	}
	if slices.ContainsFunc(op.Parameters, func(p spec.Parameter) bool { return p.In == "body" }) {
		usual = append(usual, http.StatusBadRequest)
	}
	for _, status := range usual {
		if _, said := statuses[status]; !said {
			statuses[status] = *spec.NewResponse().WithDescription(http.StatusText(status))
		}
	}
	for status, r := range statuses {
		if err := completeAnswer(status, &r); err != nil {
			return err
		}
		statuses[status] = r
	}
	return completeModels(op)
}

// completeAnswer gives an answer its sentence, its model and its headers.
func completeAnswer(status int, r *spec.Response) error {
	if r.Description == "" || r.Description == http.StatusText(status) {
		if r.Description = sentences[status]; r.Description == "" {
			return fmt.Errorf("the answer %d needs a sentence", status)
		}
	}
	if status >= http.StatusBadRequest {
		r.Schema = spec.RefSchema("#/definitions/Error")
		r.Examples = map[string]any{jsonType: map[string]any{"code": status, "message": r.Description}}
	}
	switch status {
	case http.StatusCreated:
		r.AddHeader("Location", header("where the new object is"))
		r.AddHeader("Warning", header("what about the object hardly works, if anything"))
	case http.StatusUnauthorized:
		r.AddHeader("WWW-Authenticate", header(`Basic realm="karaf"`))
	case http.StatusServiceUnavailable:
		r.AddHeader("Retry-After", header("the seconds after which trying again makes sense"))
	}
	return nil
}

func header(description string) *spec.Header {
	return spec.ResponseHeader().Typed("string", "").WithDescription(description)
}
