package driver

import (
	"strconv"
	"time"
)

// State is where a record stands. The zero State is Absent.
type State uint8

const (
	// Absent: no record, or only a tombstone that keeps the token and nonce of
	// a released claim for an hour.
	Absent State = 0
	// Pending: claimed. Its holder may be working, or gone.
	Pending State = 1
	// Requeued: a copy with attempt Record.Attempt is in the broker.
	Requeued State = 2
	// Done: sealed. The only state that makes a delivery a duplicate.
	Done State = 3
	// Dead: ended as a dead letter at attempt Record.Attempt.
	Dead State = 4
)

var stateNames = [...]string{"absent", "pending", "requeued", "done", "dead"}

// String returns the state's word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown(" + strconv.Itoa(int(s)) + ")"
}

// Verdict is what the holder of a pending record has said about its attempt.
type Verdict uint8

const (
	// NoVerdict: nothing was said; if the lease ends so, the record is in doubt.
	NoVerdict Verdict = 0
	// VerdictRetry: the attempt is over, the next one is Record.NextAttempt.
	VerdictRetry Verdict = 1
	// VerdictGiveUp: the attempt is over, a dead letter follows.
	VerdictGiveUp Verdict = 2
)

var verdictNames = [...]string{"none", "retry", "give_up"}

// String returns the verdict's word.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown(" + strconv.Itoa(int(v)) + ")"
}

// Fingerprint is the digest of a payload. It catches one key used for two
// intents. Scheme 0 means none; digests of different schemes are not compared.
type Fingerprint struct {
	Scheme uint8
	Sum    [16]byte
}

// Differs reports whether both fingerprints have the same scheme and
// different sums.
func (f Fingerprint) Differs(other Fingerprint) bool {
	return f.Scheme != 0 && f.Scheme == other.Scheme && f.Sum != other.Sum
}

// Origin says where the first claim's carrier came from.
type Origin struct {
	Source    string // "kafka", "memory", ...
	Topic     string
	Partition int32
	Offset    int64
	Timestamp int64 // milliseconds since 1970, as the broker gave it
}

// Step is one kept step of an effect's journal.
type Step struct {
	Name    string
	Kind    Kind
	Receipt []byte
}

// Record is what a store keeps for one key. Times are microseconds since 1970
// on the store's clock; 0 means none.
//
// Done keeps only Kind, Token, Attempt, Fingerprint, Origin, FirstSeen,
// SealedAt, Expire, EffectID and Receipt.
type Record struct {
	State       State
	Kind        Kind // of the claim; while there is doubt, of the claim that left it
	Verdict     Verdict
	InDoubt     bool
	Token       uint64
	Attempt     uint32 // pending: the running one; requeued: the copy's (m); dead: n
	Step        uint32 // place in the retry schedule
	Takeovers   uint32 // claims that found a lease ended without a verdict
	NextAttempt uint32 // with VerdictRetry: m
	NextStep    uint32 // with VerdictRetry
	Fingerprint Fingerprint
	Nonce       Nonce // of the claim that holds a pending record
	Released    Nonce // of the last claim that was released onto this record
	// ReleasedToken is that claim's token: the next one is above it.
	ReleasedToken uint64
	LeaseEnd      int64 // pending: 0 means held, never free
	AttemptEnd    int64 // when the last attempt ended, at the latest
	Due           int64 // with VerdictRetry: not before
	FirstSeen     int64
	SealedAt      int64
	Expire        int64 // 0: stays until it is moved on
	Origin        Origin
	EffectID      string // done: what the sink calls it
	Receipt       []byte
	Reason        string // requeued and dead: why
	Steps         []Step
	// Prior is the record that a pending record's claim found, nil if the claim
	// found none. A release puts it back. Its own Prior is always nil.
	Prior *Record
	// PriorLost says that this pending record was itself put back by a release,
	// without the record that its own claim had found: it cannot be released.
	PriorLost bool
}

// Expired reports whether the record's time is over at store time now. Pending
// records and doubt never expire.
func (r *Record) Expired(now int64) bool {
	if r.Expire == 0 || r.Expire > now || r.State == Pending {
		return false
	}
	return !r.InDoubt || r.State == Done
}

// Held reports whether a pending record has a living holder at store time now.
func (r *Record) Held(now int64) bool {
	return r.State == Pending && (r.LeaseEnd == 0 || r.LeaseEnd > now)
}

// Doubtful reports whether nobody knows at store time now if the effect was
// applied: doubt that was kept, or a lease that ended without a verdict.
func (r *Record) Doubtful(now int64) bool {
	if r.InDoubt && r.State != Done {
		return true
	}
	return r.State == Pending && r.Verdict == NoVerdict && !r.Held(now)
}

// Micros converts t to the store's unit.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time converts store microseconds to a time; 0 gives the zero Time.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
