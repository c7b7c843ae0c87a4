// Package netns makes network namespaces, runs Go code and programs in them and
// clears away those that a dead process has left behind.
package netns
