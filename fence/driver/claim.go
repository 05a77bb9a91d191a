package driver

import (
	"strconv"
	"time"
)

// TombstoneLife is how long the token and nonce of a claim that was released
// to absent are kept.
const TombstoneLife = time.Hour

// Answer is what a claim met. Answers are values, not errors.
type Answer uint8

const (
	// NoAnswer comes with an error: failed or unknown.
	NoAnswer Answer = iota
	// New: the caller holds the key and runs the effect.
	New
	// Duplicate: sealed before; Record has the effect id and receipt.
	Duplicate
	// Held: another claim holds the key for Claimed.Left.
	Held
	// InDoubt: the caller holds the key and must resolve the doubt.
	InDoubt
	// GivingUp: the caller holds the key and finishes the dead letter.
	GivingUp
	// Requeuing: the caller holds the key and produces the copy of
	// Record.NextAttempt again, then hands over: the holder that said retry
	// ended before the copy was known to be there, and it is not due yet.
	Requeuing
	// Conflict: the key is used for another payload; nothing was written.
	Conflict
	// Superseded: a copy with a higher attempt is in the broker.
	Superseded
	// IsDead: ended as a dead letter at an attempt not below the delivery's,
	// or in a doubt that only a person may clear.
	IsDead
)

var answerNames = [...]string{"none", "new", "duplicate", "held", "in_doubt", "giving_up", "requeuing", "conflict", "superseded", "dead"}

// String returns the answer's word, as in logs and metrics.
func (a Answer) String() string {
	if int(a) < len(answerNames) {
		return answerNames[a]
	}
	return "unknown(" + strconv.Itoa(int(a)) + ")"
}

// Granted reports whether the caller holds the key after this answer.
func (a Answer) Granted() bool {
	return a == New || a == InDoubt || a == GivingUp || a == Requeuing
}

// Claim asks for a key.
type Claim struct {
	Key         Digest
	Nonce       Nonce
	Kind        Kind
	Attempt     uint32 // the delivery's, from 1
	Step        uint32 // the delivery's
	Lease       time.Duration
	Fingerprint Fingerprint
	Origin      Origin
	// InPlace says that retries wait in the lane: a retry that is not due
	// answers Held instead of Requeuing.
	InPlace bool
	// NotAfter is the store time after which the store refuses the claim with
	// ErrTooLate. 0 means none.
	NotAfter int64
	// TakeoverUntil is the store time after which an ended lease is answered
	// Held: the store's clock may have jumped. 0 means no takeover at all.
	TakeoverUntil int64
}

// Claimed answers one Claim.
type Claimed struct {
	Answer Answer
	// Record is the pending record that the caller now holds, or the record
	// that answered.
	Record Record
	// Left is, with Held, the time after which asking again makes sense; 0 if
	// the record has no lease end.
	Left time.Duration
	// Now is the store's clock when it decided.
	Now int64
	Err error
}

// Decide is the meaning of a claim: what a store that holds found (nil for no
// record) answers at store time now. next is the record to write, nil to write
// nothing. token makes a fencing token above prev; it is called at most once,
// and only when next is not nil. found is not changed.
func (c *Claim) Decide(found *Record, now int64, token func(prev uint64) uint64) (next *Record, answer Claimed) {
	answer.Now = now
	if found != nil && found.Expired(now) {
		found = &Record{ReleasedToken: max(found.Token, found.ReleasedToken)}
	}
	if found == nil {
		found = &Record{}
	}
	// A re-send of a claim that was decided already gets the same answer.
	if found.State == Pending && found.Nonce == c.Nonce {
		answer.Answer, answer.Record = grantedAs(found), *found
		return nil, answer
	}
	if found.Released == c.Nonce && c.Nonce != (Nonce{}) {
		answer.Err = ErrReleased
		return nil, answer
	}
	if c.NotAfter != 0 && now > c.NotAfter {
		answer.Err = ErrTooLate
		return nil, answer
	}
	answer.Record = *found
	if found.State != Absent && found.Fingerprint.Differs(c.Fingerprint) {
		answer.Answer = Conflict
		return nil, answer
	}
	switch found.State {
	case Absent:
		return c.grant(found, now, token, c.Attempt, c.Step)
	case Done:
		answer.Answer = Duplicate
		return nil, answer
	case Requeued:
		if c.Attempt < found.Attempt {
			answer.Answer = Superseded
			return nil, answer
		}
		return c.grant(found, now, token, c.Attempt, c.Step)
	case Dead:
		// dead(n) opens to a replay's copy; doubt of AtMostOnce, or left by
		// another kind, is cleared by a person first.
		closed := found.InDoubt && (found.Kind == KindAtMostOnce || found.Kind != c.Kind)
		if c.Attempt <= found.Attempt || closed {
			answer.Answer = IsDead
			return nil, answer
		}
		return c.grant(found, now, token, c.Attempt, c.Step)
	}
	return c.decidePending(found, now, token, answer)
}

func (c *Claim) decidePending(found *Record, now int64, token func(uint64) uint64, answer Claimed) (*Record, Claimed) {
	if found.Held(now) || now > c.TakeoverUntil {
		answer.Answer = Held
		if found.LeaseEnd != 0 {
			answer.Left = max(0, time.Duration(found.LeaseEnd-now)*time.Microsecond)
		}
		return nil, answer
	}
	switch found.Verdict {
	case VerdictGiveUp:
		return c.grant(found, now, token, found.Attempt, found.Step)
	case VerdictRetry:
		if c.Attempt < found.NextAttempt && now < found.Due {
			if c.InPlace {
				answer.Answer, answer.Left = Held, time.Duration(found.Due-now)*time.Microsecond
				return nil, answer
			}
			return c.grant(found, now, token, found.Attempt, found.Step)
		}
		if c.Attempt >= found.NextAttempt {
			return c.grant(found, now, token, c.Attempt, c.Step)
		}
		return c.grant(found, now, token, found.NextAttempt, found.NextStep)
	}
	step := found.Step
	if c.Attempt > found.Attempt {
		step = c.Step
	}
	return c.grant(found, now, token, max(c.Attempt, found.Attempt+1), step)
}

// grant makes the pending record of a claim that found found.
func (c *Claim) grant(found *Record, now int64, token func(uint64) uint64, attempt, step uint32) (*Record, Claimed) {
	next := &Record{
		State: Pending, Kind: c.Kind, Token: token(max(found.Token, found.ReleasedToken)), Attempt: attempt, Step: step,
		Takeovers: found.Takeovers, Fingerprint: c.Fingerprint, Nonce: c.Nonce, LeaseEnd: now + c.Lease.Microseconds(),
		AttemptEnd: found.AttemptEnd, FirstSeen: now, Origin: c.Origin,
	}
	if found.State == Absent {
		return next, Claimed{Answer: New, Record: *next, Now: now}
	}
	prior := *found
	prior.PriorLost = prior.Prior != nil || prior.PriorLost
	prior.Prior = nil
	next.Prior = &prior
	next.InDoubt = found.InDoubt
	next.FirstSeen, next.Origin, next.Steps = found.FirstSeen, found.Origin, found.Steps
	if found.Fingerprint.Scheme != 0 {
		next.Fingerprint = found.Fingerprint
	}
	if found.State == Pending {
		goesOn := found.Verdict == VerdictGiveUp || (found.Verdict == VerdictRetry && attempt < found.NextAttempt)
		if goesOn { // the holder that said it is gone: finish what it began
			next.Verdict, next.NextAttempt, next.NextStep, next.Due = found.Verdict, found.NextAttempt, found.NextStep, found.Due
			next.Reason = found.Reason
		}
		if found.Verdict == NoVerdict && !(found.Kind == KindTransactional && c.Kind == KindTransactional) {
			next.InDoubt = true
			next.Takeovers++
			next.AttemptEnd = max(found.AttemptEnd, found.LeaseEnd)
		}
	}
	if next.InDoubt {
		next.Kind = found.Kind
	}
	return next, Claimed{Answer: grantedAs(next), Record: *next, Now: now}
}

// grantedAs derives the answer from the pending record that was granted.
func grantedAs(r *Record) Answer {
	switch {
	case r.Verdict == VerdictGiveUp:
		return GivingUp
	case r.Verdict == VerdictRetry:
		return Requeuing
	case r.InDoubt:
		return InDoubt
	}
	return New
}
