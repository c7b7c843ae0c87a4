// Package meet finds rules of handlers whose order OpenFlow leaves open. It is for
// tests.
package meet
