// Package harness ties a lab, a recording relay and a kvnet server to one Go test
// and clears all of it away when the test ends.
package harness
