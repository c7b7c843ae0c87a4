// Package integration is the parent of the tests that run kvnet as a whole: the
// real binary, real Open vSwitch in network namespaces and real packets.
//
//   - netns and ovs make namespaces and switches, lab joins them to a data centre
//     in miniature, relay records the OpenFlow between switches and server,
//     server runs the binary and speaks its REST, probe sends and captures
//     packets, harness ties all of it to a Go test. freeport chooses addresses on
//     loopback that stay free.
//   - golden replays recorded lives of ONOS's data plane and compares the rules.
//   - packets sends packets through the lab.
//   - cluster runs several servers on machines of their own, on a network that can
//     be cut, and judges who wrote to which switch; faults uses it to break things.
//   - cmd/demo is the program behind "make demo", cmd/democluster that behind
//     "make demo-cluster".
//
// Everything here needs root, because only root may make namespaces. No traffic
// leaves loopback and the namespaces made here.
package integration
