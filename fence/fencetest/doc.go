// Package fencetest holds any fence store to the claim protocol.
//
// A store that passes [Test], or [Run] where no testing framework is at hand,
// may be used below fence.Fence. Each rule is a sentence about claims,
// transitions, time, batches or failures; a report names the sentences that
// were broken. The package needs nothing but the store and a way to let its
// time pass, see [Harness].
//
// [Faulty] is a wrapper that loses requests, loses replies, delays and
// doubles. [History] and [Play] run one random history on several stores, or
// on one store with and without faults, and give answers that can be compared.
package fencetest
