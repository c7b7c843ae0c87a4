// Package reconcile makes switches equal to what the handlers want: it keeps the
// desired tables by owner, sends each switch the difference in atomic bundles, in
// an order that loses no packet, and audits what is there.
//
// The Engine plans: it takes changes of the state, asks the handlers for the
// rules of the owners concerned and turns them into claims on the tables of
// switches. A target stands for one switch: it knows what is claimed and what the
// switch holds, and its own goroutine is the only one that writes to the switch.
//
// Lock order: Engine.mu, then target.mu, then announcer.mu. No lock is held over
// I/O.
package reconcile
