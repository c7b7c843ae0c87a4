// Package oftest simulates switches: they speak enough OpenFlow 1.3 to be
// programmed, asked and connected by the thousand, and fail on demand. What they
// hold outlives their connections, as in a real switch.
package oftest
