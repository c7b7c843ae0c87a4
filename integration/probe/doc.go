// Package probe sends and captures packets in network namespaces: continuous
// pings, UDP echo, TCP services that tell their clients' addresses, ARP requests
// and raw frames.
package probe
