// Package lab builds a data centre in miniature: nodes that are namespaces with
// an Open vSwitch of their own, hosts that are namespaces with one interface, and
// wires between them. It removes everything when it is closed, and what a dead
// process has left behind when the next lab is made.
package lab
