// Package model holds a Promela model of the claim protocol, claim.pml, and the
// tests that check it with spin: without an error within every bound of a list,
// and with one as soon as any rule is taken away. docs/model.md explains both.
package model
