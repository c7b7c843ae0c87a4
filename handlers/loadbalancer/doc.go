// Package loadbalancer computes how connections to a balancer's virtual address
// (VIP), or to a floating IP bound to it, are spread over its members, and how the
// answers come back with that address.
package loadbalancer
