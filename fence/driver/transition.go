package driver

import (
	"bytes"
	"strconv"
	"time"
)

// Op names a transition.
type Op uint8

const (
	// NoOp is the zero Op; stores refuse it.
	NoOp Op = iota
	// Renew moves the lease end to now + Lease, also after it ended.
	Renew
	// Release puts back what the claim found. Only for a claim whose effect was
	// not called. It compares the nonce; Token may be 0 when the claim's answer
	// never came. Sent again it answers Repeated.
	Release
	// Retry is the verdict that the attempt is over and NextAttempt follows,
	// not before now + Due. Said again it moves no time; after GiveUp it is
	// refused.
	Retry
	// GiveUp is the verdict that the attempt is over and a dead letter follows.
	// It may follow Retry.
	GiveUp
	// Begin starts NextAttempt under the same claim (retries in place): the
	// verdict is taken back and the lease starts anew.
	Begin
	// Keep replaces the journal's steps. They only grow: with fewer steps than
	// are kept it writes nothing and answers Repeated.
	Keep
	// HandOver makes the record requeued(Attempt): the copy was acknowledged.
	HandOver
	// Bury makes the record dead(Attempt): the dead letter was acknowledged. On
	// a record that is dead in doubt already it raises the attempt. Without
	// doubt that is refused: the key was resolved meanwhile and is open to
	// higher attempts, a replay's copy among them.
	Bury
	// Seal makes the record done.
	Seal
	// Resolve ends the doubt of a dead record: applied makes it done, not
	// applied leaves it dead without doubt.
	Resolve
)

var opNames = [...]string{"none", "renew", "release", "retry", "give_up", "begin", "keep", "hand_over", "bury", "seal", "resolve"}

// String returns the transition's word, as in logs and metrics.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown(" + strconv.Itoa(int(o)) + ")"
}

// Transition moves one record on. It carries all that it writes.
type Transition struct {
	Op    Op
	Key   Digest
	Token uint64
	Nonce Nonce // Release
	// Attempt is the attempt that Retry, GiveUp and Begin speak of (they do
	// nothing to another one), the copy's (m) in HandOver, n in Bury, and the
	// sealed one in Seal.
	Attempt     uint32
	Step        uint32 // HandOver, Bury
	NextAttempt uint32 // Retry, Begin
	NextStep    uint32 // Retry, Begin
	Takeovers   uint32 // HandOver, Bury: kept from the claim's record
	Due         time.Duration
	Lease       time.Duration // Renew, Begin, Retry (0: the lease stays as it is)
	Retention   time.Duration // Seal, HandOver, Bury, Resolve: 0 never expires
	InDoubt     bool          // Retry, GiveUp, HandOver, Bury
	Applied     bool          // Resolve
	Kind        Kind
	Fingerprint Fingerprint
	Origin      Origin
	FirstSeen   int64
	AttemptEnd  int64 // HandOver, Bury: from the claim's record; what a verdict wrote since stays if it is later
	EffectID    string
	Receipt     []byte
	Reason      string
	Steps       []Step
}

// Outcome says what a transition did.
type Outcome uint8

const (
	// NoOutcome comes with an error: failed or unknown.
	NoOutcome Outcome = iota
	// OK: written.
	OK
	// Repeated: a re-send; the record stands as asked already.
	Repeated
	// Vanished: a seal found no record and wrote done.
	Vanished
	// Late: a seal found the key requeued or dead and wrote done.
	Late
	// Refused: nothing was written, the record belongs to somebody else or has
	// moved on. Applied.Record shows it.
	Refused
)

var outcomeNames = [...]string{"none", "ok", "repeated", "vanished", "late", "refused"}

// String returns the outcome's word.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown(" + strconv.Itoa(int(o)) + ")"
}

// Applied answers one Transition. Record is filled only with Refused, Late
// and Repeated: the record as the transition found it.
type Applied struct {
	Outcome Outcome
	Record  Record
	Now     int64
	Err     error
}

// Decide is the meaning of a transition on found (nil for no record) at store
// time now: next is the record to write, nil to write nothing. found is not
// changed.
func (t *Transition) Decide(found *Record, now int64) (next *Record, answer Applied) {
	answer.Now = now
	if found == nil || found.Expired(now) {
		found = &Record{}
	}
	mine := found.State == Pending && found.Token == t.Token
	switch t.Op {
	case Release:
		mine = found.State == Pending && found.Nonce == t.Nonce && (t.Token == 0 || t.Token == found.Token) && !found.PriorLost
		if mine {
			next = t.release(found, now)
		} else if found.Released == t.Nonce && t.Nonce != (Nonce{}) {
			answer.Outcome = Repeated
		}
	case Renew:
		if mine {
			next = found.with(func(r *Record) { r.LeaseEnd = now + t.Lease.Microseconds() })
		}
	case Retry, GiveUp:
		switch {
		case !mine || found.Attempt != t.Attempt || t.Op == Retry && found.Verdict == VerdictGiveUp:
		case t.said(found):
			answer.Outcome = Repeated
		default:
			next = t.say(found, now)
		}
	case Begin:
		if mine && found.Attempt == t.Attempt && found.Verdict == VerdictRetry {
			next = found.with(func(r *Record) {
				r.Attempt, r.Step, r.Verdict, r.NextAttempt, r.NextStep, r.Due = t.NextAttempt, t.NextStep, NoVerdict, 0, 0, 0
				r.LeaseEnd = now + t.Lease.Microseconds()
			})
		} else if mine && found.Attempt == t.NextAttempt && found.Verdict == NoVerdict {
			answer.Outcome = Repeated
		}
	case Keep:
		if mine && len(t.Steps) < len(found.Steps) {
			answer.Outcome = Repeated // a late double of an earlier Keep
		} else if mine {
			next = found.with(func(r *Record) { r.Steps = t.Steps })
		}
	case HandOver:
		if mine {
			next = t.end(Requeued, found, now)
		} else if found.State == Requeued && found.Token == t.Token && found.Attempt == t.Attempt {
			answer.Outcome = Repeated
		}
	case Bury:
		if mine {
			next = t.end(Dead, found, now)
		} else if found.State == Dead && found.Token == t.Token {
			switch {
			case t.Attempt <= found.Attempt:
				answer.Outcome = Repeated
			case found.InDoubt:
				next = found.with(func(r *Record) { r.Attempt = t.Attempt })
			}
		}
	case Seal:
		return t.seal(found, now, mine)
	case Resolve:
		return t.resolve(found, now)
	}
	if next != nil {
		answer.Outcome = OK
		return next, answer
	}
	if answer.Outcome == NoOutcome {
		answer.Outcome = Refused
	}
	answer.Record = *found
	return nil, answer
}

func (t *Transition) release(found *Record, now int64) *Record {
	back := Record{Expire: now + TombstoneLife.Microseconds()}
	if found.Prior != nil {
		back = *found.Prior
	}
	back.Released, back.ReleasedToken = found.Nonce, max(found.Token, found.ReleasedToken)
	return &back
}

// said reports whether found carries this verdict already: saying it again must
// not move its times.
func (t *Transition) said(found *Record) bool {
	if t.Op == GiveUp {
		return found.Verdict == VerdictGiveUp && found.InDoubt == t.InDoubt
	}
	return found.Verdict == VerdictRetry && found.InDoubt == t.InDoubt && found.NextAttempt == t.NextAttempt
}

func (t *Transition) say(found *Record, now int64) *Record {
	return found.with(func(r *Record) {
		r.InDoubt, r.AttemptEnd, r.Reason = t.InDoubt, now, t.Reason
		r.Verdict, r.NextAttempt, r.NextStep, r.Due = VerdictGiveUp, 0, 0, 0
		if t.Op == Retry {
			r.Verdict, r.NextAttempt, r.NextStep, r.Due = VerdictRetry, t.NextAttempt, t.NextStep, now+t.Due.Microseconds()
		}
		if t.Lease > 0 {
			r.LeaseEnd = now + t.Lease.Microseconds()
		}
	})
}

// end makes the record that a hand-over or a bury leaves. Of found it keeps
// what the holder cannot know: the store time at which its verdict ended the
// attempt, and what an earlier release left, so that later tokens grow above it.
func (t *Transition) end(state State, found *Record, now int64) *Record {
	return &Record{
		State: state, Kind: t.Kind, InDoubt: t.InDoubt, Token: t.Token, Attempt: t.Attempt, Step: t.Step, Takeovers: t.Takeovers,
		Fingerprint: t.Fingerprint, AttemptEnd: max(t.AttemptEnd, found.AttemptEnd), FirstSeen: t.FirstSeen, Expire: expiry(now, t.Retention),
		Origin: t.Origin, Reason: t.Reason, Steps: t.Steps, Released: found.Released, ReleasedToken: found.ReleasedToken,
	}
}

func (t *Transition) done(now int64) *Record {
	return &Record{
		State: Done, Kind: t.Kind, Token: t.Token, Attempt: t.Attempt, Fingerprint: t.Fingerprint, Origin: t.Origin,
		FirstSeen: t.FirstSeen, SealedAt: now, Expire: expiry(now, t.Retention), EffectID: t.EffectID, Receipt: t.Receipt,
	}
}

// seal: an applied effect is a fact, so a seal that meets no other holder
// writes done all the same.
func (t *Transition) seal(found *Record, now int64, mine bool) (*Record, Applied) {
	answer := Applied{Outcome: OK, Now: now}
	switch {
	case mine:
		return t.done(now), answer
	case found.State == Absent:
		answer.Outcome = Vanished
		return t.done(now), answer
	case found.State == Requeued || found.State == Dead:
		answer.Outcome, answer.Record = Late, *found
		return t.done(now), answer
	case found.State == Done && found.Token == t.Token && found.EffectID == t.EffectID && bytes.Equal(found.Receipt, t.Receipt):
		answer.Outcome, answer.Record = Repeated, *found
		return nil, answer
	}
	answer.Outcome, answer.Record = Refused, *found
	return nil, answer
}

func (t *Transition) resolve(found *Record, now int64) (*Record, Applied) {
	answer := Applied{Outcome: OK, Now: now}
	same := found.Token == t.Token
	switch {
	case same && found.State == Dead && found.InDoubt && t.Applied:
		done := t.done(now)
		done.Kind, done.Token, done.Attempt, done.Fingerprint = found.Kind, found.Token, found.Attempt, found.Fingerprint
		done.Origin, done.FirstSeen = found.Origin, found.FirstSeen
		return done, answer
	case same && found.State == Dead && found.InDoubt:
		return found.with(func(r *Record) {
			r.InDoubt, r.Reason, r.Expire = false, t.Reason, expiry(now, t.Retention)
		}), answer
	case same && (found.State == Done && t.Applied && found.EffectID == t.EffectID || found.State == Dead && !t.Applied):
		answer.Outcome, answer.Record = Repeated, *found
		return nil, answer
	}
	answer.Outcome, answer.Record = Refused, *found
	return nil, answer
}

func (r *Record) with(change func(*Record)) *Record {
	next := *r
	change(&next)
	return &next
}

func expiry(now int64, retention time.Duration) int64 {
	if retention <= 0 {
		return 0
	}
	return now + retention.Microseconds()
}
