// Package packets tests kvnet with real packets through real switches. Each test
// of a case carries the case's name, for example TestSNAT1.
package packets
