// Package driver is the small interface that a fence store implements.
//
// A [Store] keeps one [Record] per key and moves it by transitions that are
// data: a batch of [Claim] or [Transition] values goes in, one answer per
// item comes out, and each item is one atomic step on its key. What a step
// means is written once, in [Claim.Decide] and [Transition.Decide]; a store
// that can run Go inside its transaction calls them, one that cannot (a Redis
// script) does the same in its own language and is held to it by
// fence/fencetest.
//
// Users do not call a Store. They use fence.Fence, which checks arguments,
// renews leases, keeps the clocks and sends again what is proven safe.
package driver

import (
	"context"
	"errors"
)

// Digest is the SHA-256 of a key's canonical text: the name of its record.
type Digest = [32]byte

// Nonce marks one claim. It is random, sent again unchanged when a client
// library re-sends, and never used for another claim.
type Nonce = [16]byte

// Sentinel errors of single items.
var (
	// ErrTooLate is the answer to a claim that reached the store after its
	// NotAfter. Nothing was written: it is safe to claim again with a new nonce.
	ErrTooLate = errors.New("claim reached the store after the time it named")
	// ErrReleased is the answer to a claim whose nonce was released already:
	// a doubled request that arrived late. Nothing was written.
	ErrReleased = errors.New("claim was released already")
	// ErrUnreadable marks a stored record that this version cannot read.
	// The store wrote nothing; no effect may run for the key.
	ErrUnreadable = errors.New("stored record cannot be read")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("fence store is closed")
)

// Store keeps the records of any number of namespaces. All methods may be
// called from several goroutines.
//
// Time is the store's: leases and expiries are judged by the store's own
// clock, in microseconds since 1970. Every answer carries that clock.
//
// Errors: an item's Err means that this item failed or that nobody knows
// whether it was applied; items without Err were applied. Sending an item
// again, unchanged, is always safe: claims and releases carry a nonce, all
// other transitions compare the token and answer [Repeated].
type Store interface {
	// Claim decides each claim on its record. It answers one Claimed per
	// claim, in order. No two claims of a batch have the same Key.
	Claim(ctx context.Context, namespace string, claims []Claim) []Claimed

	// Apply decides each transition on its record. It answers one Applied per
	// transition, in order. No two transitions of a batch have the same Key.
	// A batch made only of [Renew] should not wait behind other batches.
	Apply(ctx context.Context, namespace string, transitions []Transition) []Applied

	// Get reads records from the write side (never a replica). A key without
	// record, or with an expired one, answers a Record whose State is Absent.
	Get(ctx context.Context, namespace string, keys []Digest) ([]Record, error)

	// Scan calls yield for each record that the filter lets through, in no
	// order, until yield returns false. Records that change meanwhile may be
	// seen in either form, or not at all if they are deleted.
	Scan(ctx context.Context, namespace string, filter Filter, yield func(Digest, Record) bool) error

	// Purge removes at most limit expired records and tombstones and says how
	// many. It never removes pending, nor dead in doubt. Stores that expire by
	// themselves answer 0.
	Purge(ctx context.Context, namespace string, limit int) (int, error)

	// Marker merges update into the namespace's marker and answers the result.
	// The first call makes the marker; its Epoch then stays.
	Marker(ctx context.Context, namespace string, update Marker) (Marker, error)

	// Grade reads from live settings how much the store's answers survive.
	Grade(ctx context.Context) (Grade, error)

	// Close releases what the store itself opened. Clients that the user
	// handed in stay open.
	Close() error
}

// Filter selects records in Scan. The zero Filter selects all.
type Filter struct {
	// States limits to these states; empty means every state but tombstones.
	States []State
	// InDoubt limits to records that carry doubt, and to pending ones whose
	// lease ended without a verdict.
	InDoubt bool
}

// Match reports whether r, read at store time now, passes the filter. Expired
// records never do.
func (f Filter) Match(r *Record, now int64) bool {
	if r.State == Absent || r.Expired(now) {
		return false
	}
	if len(f.States) > 0 {
		found := false
		for _, s := range f.States {
			found = found || s == r.State
		}
		if !found {
			return false
		}
	}
	if f.InDoubt {
		return r.Doubtful(now)
	}
	return true
}
