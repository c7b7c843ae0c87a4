// Package bench measures kvnet against what it is built on, in one run and on one
// machine, and says the results as ratios: rules against ovs-ofctl, REST and start
// against the bare engine of the store, many ports against few.
package bench
