// Package rest is ONOS's REST interface and kvnet's additions to it.
//
// A request is decoded into an edge type (the codec_*.go files), which reads
// leniently as ONOS's codecs do, then validated, and then turned into an object
// of package model. Answers go the other way. Only this package knows ONOS's
// JSON, and only this package imports gin.
//
// A call is a row of the route table (routes.go): what it reads and answers, who
// may call it, and its handler. HEAD, OPTIONS, Allow, content negotiation, roles,
// limits, metrics and the audit log follow from the row. Handlers return an
// apiError to refuse a request.
package rest
