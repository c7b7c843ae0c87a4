// Package handlertest lets tests see the rules of handlers while a state changes,
// as the reconciler sees them.
package handlertest
