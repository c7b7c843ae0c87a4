// Package openflow talks OpenFlow 1.3 to switches: it accepts their connections,
// settles the role of this server on each of them, sends bundles and reads back
// what a switch holds.
//
// Messages are encoded by libOpenflow, with its faults mended in mend.go.
// Everything that a switch sends is decoded by package wire, which checks every
// length.
package openflow
