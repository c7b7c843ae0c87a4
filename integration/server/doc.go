// Package server builds and runs the real kvnet binary for tests and speaks its
// REST interface as a client would.
package server
