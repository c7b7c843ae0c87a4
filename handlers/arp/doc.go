// Package arp builds and reads the ARP frames (RFC 826, Ethernet and IPv4) that
// gateways exchange with their upstream routers.
package arp
