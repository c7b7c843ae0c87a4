package rest

import (
	"cmp"
	"net/netip"
	"slices"
)

// The lists of ONOS are sets: equal elements collapse.

// appendNew appends v unless list has it.
func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// sortedSet is list without duplicates, ascending.
func sortedSet[T cmp.Ordered](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// sortedAddresses is the set of the addresses that the texts name, ascending.
func sortedAddresses(list []string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, address(&s))
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
