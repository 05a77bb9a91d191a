// Package consumertest holds any source of records to the contract of
// consumer/driver.
//
// A source that passes [Test], or [Run] where no testing framework is at hand,
// may be used below the consumer package. Each rule is a sentence about
// delivery, assignments, positions, pauses or the end; a report names the
// sentences that were broken. The package needs nothing but a [Harness].
package consumertest
