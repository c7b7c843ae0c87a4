// Package snat computes how VMs reach the outside with their router's address,
// and how the answers come back.
package snat
