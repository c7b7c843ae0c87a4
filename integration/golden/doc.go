// Package golden replays recorded lives of ONOS's data plane against a kvnet
// server and real switches and compares the rules after each step.
//
// A scenario is a folder with input.json, the steps, and expected-flows.txt, what
// the switches held after each step under ONOS. Only rules of the handlers that
// were recorded and the base rules count. Where kvnet does something else on
// purpose there is a row in deviations.go and in docs/deviations.md.
package golden
