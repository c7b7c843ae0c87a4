// Package routerarp finds out the MACs of upstream routers: its handler lets
// their ARP packets come to the controller, its prober asks for the MACs that
// aren't known and judges the answers.
package routerarp
