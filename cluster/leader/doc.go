// Package leader decides which server may lead, under which term, and what the
// leader writes as decided.
//
// A term belongs to one life of one process. It is taken in the store by
// compare-and-swap, guards the leader's own writes there, and goes to every
// switch as OpenFlow generation id, so that the switch refuses an earlier
// leader by itself.
package leader
