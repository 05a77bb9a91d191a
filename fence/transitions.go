package fence

import (
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Verdict is what an attempt left.
type Verdict struct {
	// InDoubt replaces the record's doubt. Doubt is sticky: a holder that was
	// granted a record in doubt passes it on, whatever its own attempt said,
	// unless a probe proved that nothing was applied.
	InDoubt bool
	Reason  string
}

func (h *Hold) base(op driver.Op) driver.Transition {
	r := h.record
	return driver.Transition{
		Op: op, Key: h.key.Digest(), Token: r.Token, Attempt: r.Attempt, Step: r.Step, Takeovers: r.Takeovers, Kind: r.Kind,
		Fingerprint: r.Fingerprint, Origin: r.Origin, FirstSeen: r.FirstSeen, AttemptEnd: r.AttemptEnd, Steps: r.Steps,
	}
}

// attemptEnd is when the last attempt ended, at the latest: now, unless the
// claim only finishes what another holder's attempt left.
func (h *Hold) attemptEnd() int64 {
	end := h.record.AttemptEnd
	if h.record.Verdict == driver.NoVerdict {
		end = max(end, driver.Micros(h.space.Now()))
	}
	return end
}

// Seal makes the key done: the effect was applied. effectID is what the sink
// calls it, from 1 to driver.MaxEffectID bytes without control characters.
func (h *Hold) Seal(kind driver.Kind, effectID string, receipt []byte) driver.Transition {
	t := h.base(driver.Seal)
	t.Kind, t.EffectID, t.Receipt, t.Retention = kind, effectID, receipt, h.space.fence.opts.Retention
	return t
}

// Keep replaces the journal's steps, which only grow.
func (h *Hold) Keep(steps []driver.Step) driver.Transition {
	t := h.base(driver.Keep)
	t.Steps = steps
	return t
}

// Release puts back what the claim found. Only when the effect was not called.
func (h *Hold) Release() driver.Transition {
	return driver.Transition{Op: driver.Release, Key: h.key.Digest(), Token: h.record.Token, Nonce: h.record.Nonce}
}

// Retry says that the attempt is over and the next one follows after due, at
// the next step of the schedule.
func (h *Hold) Retry(v Verdict, due time.Duration) driver.Transition {
	t := h.base(driver.Retry)
	t.InDoubt, t.Reason, t.Due = v.InDoubt, v.Reason, due
	t.NextAttempt, t.NextStep = t.Attempt+1, t.Step+1
	return t
}

// HandOver makes the key requeued: the copy of the next attempt was
// acknowledged.
func (h *Hold) HandOver(v Verdict) driver.Transition {
	t := h.base(driver.HandOver)
	t.InDoubt, t.Reason, t.Retention = v.InDoubt, v.Reason, h.space.fence.opts.DeadRetention
	t.AttemptEnd = h.attemptEnd()
	t.Attempt, t.Step = t.Attempt+1, t.Step+1
	if h.record.Verdict == driver.VerdictRetry {
		t.Attempt, t.Step = h.record.NextAttempt, h.record.NextStep
	}
	return t
}

// GiveUp says that the attempt is over and a dead letter follows.
func (h *Hold) GiveUp(v Verdict) driver.Transition {
	t := h.base(driver.GiveUp)
	t.InDoubt, t.Reason = v.InDoubt, v.Reason
	return t
}

// Bury makes the key dead at attempt, at least its own: the dead letter was
// acknowledged.
func (h *Hold) Bury(v Verdict, attempt uint32) driver.Transition {
	t := h.base(driver.Bury)
	t.InDoubt, t.Reason, t.Retention = v.InDoubt, v.Reason, h.space.fence.opts.DeadRetention
	t.AttemptEnd = h.attemptEnd()
	t.Attempt = max(t.Attempt, attempt)
	return t
}

// Begin starts the next attempt under the same claim, after Retry was applied.
// The Hold then speaks of that attempt.
func (h *Hold) Begin() driver.Transition {
	t := h.base(driver.Begin)
	t.NextAttempt, t.NextStep, t.Lease = t.Attempt+1, t.Step+1, h.lease
	return t
}

// Begun tells the Hold that Begin was applied.
func (h *Hold) Begun() {
	next := *h.record
	next.Attempt, next.Step, next.Verdict = next.Attempt+1, next.Step+1, driver.NoVerdict
	h.record = &next
}
