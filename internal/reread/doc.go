// Package reread keeps what was made of files up to date with them: certificates,
// accounts. Nothing watches the files; whoever asks for the value has them looked
// at, which costs a stat(2) for each.
package reread
