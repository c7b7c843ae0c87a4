// Package ovs runs Open vSwitch in a network namespace: an ovsdb-server and an
// ovs-vswitchd with the userspace datapath, as ordinary child processes.
package ovs
