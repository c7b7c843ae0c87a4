// Package linear checks that a cluster of servers behaves as one: several clients
// read and write the same routers by different servers while servers are
// killed, paused and cut off, and what each of them was answered is held against a
// model of a single router (porcupine).
//
// Reads with consistent=true must always fit, which is called linearizable: there
// is an order of all operations, each somewhere between its request and its answer,
// in which every answer is right. Plain reads come from the server's own copy and
// may be old; how often that shows is reported. If it never does, the run has not
// looked closely enough to say anything about consistent reads, and fails too.
//
// Such a check can take time without bound if the outcome of many writes is not
// known, so clients change to new routers before it can (Keys), and what reads tell
// about the outcome is made use of (Of).
//
// Without flags only the model and the recording are tested. "go test
// ./integration/linear -linear 10m" runs the whole (make test-linear).
package linear
