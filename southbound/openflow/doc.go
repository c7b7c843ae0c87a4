// Package openflow talks OpenFlow 1.3 to switches: it accepts their connections,
// settles the role of this server on each of them, sends bundles and reads back
// what a switch holds.
//
// Rules, of which there are many, are encoded here (see Encoder); all other
// messages by libOpenflow, with its faults mended in mend.go.
// Everything that a switch sends is decoded by package wire, which checks every
// length.
package openflow
