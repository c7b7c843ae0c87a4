// Package freeport chooses addresses on loopback that stay free until the test
// that asked for them listens there.
package freeport
