// Package describe makes the descriptions of kvnet's calls. swag reads the
// annotations beside the handlers; what is equal for many calls, or can't be said
// in an annotation, is added here:
//
//   - @x-added true: the call is not in ONOS, so its description stands in kvnet's
//     document and not in that of an app.
//   - @x-public true: the call needs no credentials.
//   - @x-optional ["a"]: members of the answer that may be absent; all others of
//     an answer that is written as object{…} are there.
//   - @Produce json: the call declares JSON as the type of its answer, as ONOS's
//     resources do; a client that takes none gets 406.
//   - @Accept json: likewise for the body, with 415.
//   - @Failure 404 without more: the usual sentence for that status.
package describe
