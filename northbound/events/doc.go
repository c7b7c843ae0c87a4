// Package events names changes as ONOS's events. The names are for people and for
// programs that watch kvnet; nothing inside kvnet is driven by them, because ONOS
// has no event for many changes (a replaced external address, a moved floating
// IP).
//
// A name says that an object was changed in a certain way. It is derived from the
// object's old and new version alone, so it appears at most once for a change:
// which members a balancer got, or which rules a security group lost, is the
// difference between the two.
package events
