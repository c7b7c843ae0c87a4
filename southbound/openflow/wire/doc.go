// Package wire decodes the OpenFlow 1.3 messages that a switch sends. Every
// length is checked, nothing that is returned shares memory with the input, and
// what isn't known is an error, never a panic.
package wire
