// Package memfence keeps a fence in the memory of one process.
//
// It is the reference that the other stores are compared with: every answer
// comes straight from [driver.Claim.Decide] and [driver.Transition.Decide].
// It forgets everything when the process ends, so it suits tests, examples
// and effects that may run again after a restart. Its clock is time.Now,
// which testing/synctest moves.
package memfence
