// Package gossip knows which servers are there: members, the detection of a
// failed one, requests between them, and the founding of a cluster.
//
// It builds on hashicorp/memberlist and adds what a small cluster of servers
// needs: members of another cluster, of the same name or address are refused
// with a reason; seeds are joined anew while the view is short; a session
// between each two members tells at once when a process has died.
//
// Gossip proposes and never decides. A server that is cut off goes on believing
// in its old view for a while, so two servers may think of themselves as the
// candidate at the same time. What decides is the term in the store.
//
// Everything goes over the one gossip port: memberlist's packets and streams,
// requests (Call), and the sessions. With a key, all of it is authenticated.
package gossip
