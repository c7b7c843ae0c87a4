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
	public := take(op, "x-public")
	if public {
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
	if !public {
		if method == http.MethodGet && !slices.ContainsFunc(op.Tags, func(t string) bool { return slices.Contains(ofThisServer, t) }) {
			op.Parameters = append(op.Parameters, *consistent())
			usual = append(usual, http.StatusBadRequest)
		}
		for status, r := range statuses {
			if status < http.StatusBadRequest {
				r.AddHeader("X-Kvnet-Revision", header("the revision of the store that the answer is about: a read contains it, a write is in force at it"))
				statuses[status] = r
			}
		}
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

// ofThisServer are the tags of calls about the server that answers, rather than
// about what is stored.
var ofThisServer = []string{"inspection", "cluster", "docs", "health"}

// consistent is the parameter of every call that reads what is stored.
func consistent() *spec.Parameter {
	p := spec.QueryParam("consistent").Typed("boolean", "")
	p.Description = "true: the answer contains every write that any server had acknowledged when it was asked, or is 503 without a quorum. " +
		"Otherwise the server shows what it has, which may be a moment old"
	return p
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
