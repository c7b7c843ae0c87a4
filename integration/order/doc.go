// Package order tests that the order of events does not matter: whatever happens
// to objects and switches, in the end the switches hold what the handlers compute
// from the final state at once.
package order
