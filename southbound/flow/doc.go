// Package flow describes what must be on a switch (rules, groups, buckets) as
// plain values, with canonical text in the grammar of ovs-ofctl both ways.
//
// Ports are named, not numbered: southbound/reconcile fills in the number of the
// switch at hand. Nothing here knows how a rule travels.
package flow
