// Package openapi holds the descriptions of kvnet's calls (Swagger 2.0) and the
// page that shows them: Swagger UI with a little of our own around it. Both are in
// the binary, so the page works without a network.
//
// The descriptions are generated from the annotations in northbound/rest and are
// never edited by hand; `make generate` makes them anew.
package openapi

//go:generate go run ./internal/generate
