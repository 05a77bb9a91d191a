package fence

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Hold is a key held under a lease. The Space renews it until it is ended.
type Hold struct {
	space  *Space
	key    Key
	token  uint64
	record *driver.Record
	lease  time.Duration
	// end is the local wall time in nanoseconds at which the holder sees its
	// lease end; 0 once it was lost.
	end   atomic.Int64
	ended atomic.Bool
	limit atomic.Int64 // renew until then (local nanoseconds); 0: no limit

	mu     sync.Mutex
	onLost func()
}

// Key returns the key.
func (h *Hold) Key() Key { return h.key }

// Token returns the fencing token.
func (h *Hold) Token() uint64 { return h.token }

// Record returns the pending record as it was granted. It must not be changed.
func (h *Hold) Record() *driver.Record { return h.record }

// End is the local time at which the lease ends for the holder; zero when it
// was lost to another holder.
func (h *Hold) End() time.Time {
	if end := h.end.Load(); end != 0 {
		return time.Unix(0, end)
	}
	return time.Time{}
}

// Live reports whether the effect may still start or go on.
func (h *Hold) Live(now time.Time) bool { return !h.ended.Load() && now.UnixNano() < h.end.Load() }

// Started limits renewing: the effect began and runs at most maxRun.
func (h *Hold) Started(now time.Time, maxRun time.Duration) {
	h.limit.Store(now.Add(maxRun).UnixNano())
}

// Finished lifts that limit: the effect ended, and the lease is renewed until
// its outcome is written.
func (h *Hold) Finished() { h.limit.Store(0) }

// OnLost sets what is called once when the lease ends or is lost before Drop,
// at once if that has happened already. f must not block.
func (h *Hold) OnLost(f func()) {
	h.mu.Lock()
	h.onLost = f
	h.mu.Unlock()
	if !h.Live(time.Now()) {
		h.lose()
	}
}

// lose calls OnLost's function, once.
func (h *Hold) lose() {
	h.mu.Lock()
	f := h.onLost
	h.onLost = nil
	h.mu.Unlock()
	if f != nil && !h.ended.Load() {
		f()
	}
}

// Drop stops renewing. Call it when a transition ended the claim, or when it is
// left to its lease.
func (h *Hold) Drop() { h.ended.Store(true) }

// Verdict is what an attempt left.
type Verdict struct {
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

// Seal makes the key done.
func (h *Hold) Seal(kind driver.Kind, effectID string, receipt []byte) driver.Transition {
	t := h.base(driver.Seal)
	t.Kind, t.EffectID, t.Receipt, t.Retention = kind, effectID, receipt, h.space.fence.opts.Retention
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
