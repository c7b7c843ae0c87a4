package flow

import "math/bits"

// PortRange is the shortest list of masks that together match the ports from min
// to max, both included, and no others, ascending. It is empty if min is above
// max.
func PortRange(min, max uint16) (out []PortMask) {
	for next, end := uint32(min), uint32(max)+1; next < end; {
		// The largest block that starts here: a power of two that divides the
		// start and doesn't reach beyond the end.
		size := uint32(1) << bits.TrailingZeros32(next|1<<16)
		for next+size > end {
			size >>= 1
		}
		out = append(out, PortMask{Value: uint16(next), Mask: uint16(-size)})
		next += size
	}
	return out
}
