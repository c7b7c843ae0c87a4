// Package faults kills, pauses, cuts off and fills up the servers of a cluster and
// its switches, and shows that nobody notices.
//
// Each case has the same skeleton: record all objects, rules and groups and start
// traffic; inject the fault and end it; wait until one server is MASTER of all
// switches; compare everything; prove by new work that all servers are of use.
//
// Without flags only a short case runs. "go test ./integration/faults -faults all"
// runs all of them (make test-faults).
package faults
