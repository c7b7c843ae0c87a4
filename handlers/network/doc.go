// Package network computes how gateways answer for the gateway addresses of
// provider networks (FLAT and VLAN): ARP requests and ICMP echo requests.
package network
