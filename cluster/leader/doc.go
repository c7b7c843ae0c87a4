// Package leader decides which server may lead, under which term, and what the
// leader writes as decided.
//
// A term belongs to one life of one process. It is taken in the store by
// compare-and-swap, guards the leader's own writes there, and goes to every
// switch as OpenFlow generation id, so that the switch refuses an earlier
// leader by itself.
//
// # The lease
//
// A leader asks the store again and again whether its term is in force, and
// stops a fixed time (Patience) after the last question that was answered with
// yes, measured on the monotonic clock. So one that is cut off from the quorum
// stops by itself. It is no condition for the next leader, which takes a later
// term as soon as the quorum gives it one: two may act at the same time for as
// long as the lease lasts. That does no harm where terms are checked, which is
// on every switch and on every write to the store; what a leader does elsewhere,
// as in a database of bridges, has to be what any leader would do.
package leader
