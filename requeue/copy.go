package requeue

import (
	"errors"
	"time"
)

// Version is the version of the header format that this release writes.
const Version = 1

// MaxErrorText is the longest error text that travels in a header, in bytes.
const MaxErrorText = 1024

// ErrVersion is matched by an error of [Decode] that says that another release
// wrote the copy in a format that this one does not know. The copy may be
// perfectly sound.
var ErrVersion = errors.New("copy has an unknown format version")

// Copy is what the headers of a copy say: a record that was moved to a retry
// topic or to the dead letters.
type Copy struct {
	// KeyText is the canonical text of the idempotency key, "" for a record that
	// has none (poison).
	KeyText string
	// Namespace is the canonical text of the namespace that the key lives in. A
	// copy of another namespace is not ours. Never empty.
	Namespace string
	// Attempt is the attempt that the copy stands for: the one to run, or, in a
	// dead letter, the last that ran. Step is its place in the schedule: the
	// number of retries used up.
	Attempt, Step uint32
	// Delay is how long the copy still has to wait, counted from its append
	// time, in whole milliseconds.
	Delay time.Duration
	// Origin is where the original record was read.
	Origin Origin
	// FirstSeen is when the key was first claimed; zero if it never was.
	FirstSeen time.Time
	// Reason says in a word or two why the record was moved, Class is the class
	// of the error, Error its text without any payload. All three are for
	// people; what is not printable ASCII is written as an escape. Reason and
	// Class are cut to 200 bytes, Error to [MaxErrorText].
	Reason, Class, Error string
	// Fingerprint is the digest of the original's payload with its scheme,
	// "1:<hex>". OtherFingerprint is that of the first payload of the same key,
	// in a conflict. "" if there is none.
	Fingerprint, OtherFingerprint string
	// Pointer says that the copy was too large for its topic and holds less than
	// the original, which lies at Origin. Omitted says what was left out:
	// "value", "value,headers" or "value,headers,key". What was left out is nil.
	Pointer bool
	Omitted string
}

// Origin is where the original record was read.
type Origin struct {
	Topic       string
	Partition   int32
	Offset      int64
	TopicID     [16]byte  // zero: not known
	LeaderEpoch int32     // -1: not known
	Timestamp   time.Time // of the original record, to the millisecond; zero: none
}
