// Package decide holds the pure functions that turn the snapshot into what the
// leader decides: gateway election, node states, peer MACs, and the allocation of
// conntrack zones and group ids. Nothing here writes anything.
package decide
