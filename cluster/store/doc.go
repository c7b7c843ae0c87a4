// Package store keeps what clients want and what the leader has decided in
// etcd, embedded in the process or an external cluster, and feeds the tables of
// model/state from one watch.
//
// # Keys
//
//	/kvnet/v1/<kind>/<id>                    a wanted object
//	/kvnet/v1/status/<kind>/<id>             what the leader has decided about it
//	/kvnet/v1/ref/router/<name>/fip/<id>     floating IP <id> uses router <name>
//	/kvnet/v1/ref/bridge/<device id>         the host that owns the bridge
//	/kvnet/v1/fence/<server>                 written to end its unanswered writes
//	/kvnet/v1/leader                         the term that is in force
//	/kvnet/v1/meta                           cluster id, time of creation, epoch
//	/kvnet/v1/members/<name>                 the address of a member that was added
//	                                         and has not started yet
//
// Names and ids are escaped into one segment each, so that any text is a legal
// id. The keys under ref/ are written in the same transactions as the objects
// that they are about; they exist so that a transaction can check a condition
// over several objects (a router in use, a bridge of another host).
//
// # Reading one's own write
//
// Every write returns the revision at which it is in force. The snapshot of
// model/state contains it once state.DB.WaitRevision returns for that revision.
//
// # Several servers
//
// The embedded engine is a member of an etcd cluster of one, three or more. A
// cluster is founded by members that start with the same plan (Cluster), or
// grows out of one server: AddLearner, start the new one with the plan that this
// returns, Promote. The data directory remembers the plan; a restart needs none.
// A plan names hosts rather than IP addresses where it can: when names point
// elsewhere nothing has to be changed. For servers that have addresses only and
// have all got others, Config.Cluster tells each where the others are now.
//
// Every server reads from its own copy (the watch and the tables), with or
// without a quorum. Writes, Get, and Linearizable need one.
//
// A cluster that was restored or recovered has another id than the one it comes
// from, in etcd's terms too, so that members of both never mix, and a later
// epoch, so that switches obey it.
//
// # Unknown outcomes
//
// A write that ends with ErrUnavailable may or may not have been carried out,
// as with any store over a network. Whoever repeats it must be ready for
// ErrExists, ErrNotFound or ErrConflict as the trace of the first attempt.
package store
