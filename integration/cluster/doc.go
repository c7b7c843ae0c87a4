// Package cluster runs several servers as one cluster in a lab of real switches:
// each server in a network namespace of its own, on a management network that can
// be cut anywhere, and with a recording relay between it and the switches, which
// tells who wrote what. It also knows how to look at the whole: the objects, rules
// and groups that must outlive a fault, the traffic that must not notice it, and
// which server a switch obeyed when.
package cluster
