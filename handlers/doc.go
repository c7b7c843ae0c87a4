// Package handlers says what a handler is: a pure function from the snapshot of
// the state to the rules, groups and buckets that must exist on the switches.
//
// Changes only say whose rules to compute again. Installing, removing, repairing
// and taking over are all the work of southbound/reconcile.
package handlers
