// Package pipeline computes the base rules of bridges: how a packet passes from
// table to table when no other rule takes it.
package pipeline
