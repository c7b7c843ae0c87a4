// Package all lists the handlers that kvnet runs.
package all

import (
	"kvnet/handlers"
	"kvnet/handlers/loadbalancer"
	"kvnet/handlers/network"
	"kvnet/handlers/pipeline"
	"kvnet/handlers/routerarp"
	"kvnet/handlers/snat"
)

// Handlers returns one of each handler.
func Handlers() []handlers.Handler {
	return []handlers.Handler{pipeline.New(), network.New(), routerarp.New(), snat.New(), loadbalancer.New()}
}
