// Package pause waits for a time that may be cut short.
package pause
