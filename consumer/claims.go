package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// Two requests of a kind at most are under way: one at the store, one behind it
// if it is full. So batches grow by themselves while the store is busy, and
// nothing waits while it is idle.
const requestsUnderWay = 2

// mayClaim is how many more claims may be made now.
func (l *loop) mayClaim(now time.Time) int {
	if l.stopping || now.Before(l.storeRetry) || l.alone != nil || l.suspects.len() > 0 {
		return 0
	}
	waiting, taken := l.pool.load()
	if !l.claimsAhead() { // claimed and not started is doubt for nothing
		return l.opts.Concurrency - waiting - taken - l.claimable
	}
	if waiting == 0 && taken < l.opts.Concurrency && l.holds+l.claimable >= l.ahead {
		l.ahead = min(l.ahead*2, l.opts.Concurrency+2*l.opts.BatchSize)
	}
	return l.ahead - waiting - taken - l.claimable
}

func (l *loop) pumpClaims(now time.Time) {
	for l.claimQ.len() > 0 && l.claiming < requestsUnderWay {
		if l.claiming > 0 && l.claimQ.len() < l.opts.BatchSize {
			return
		}
		n := min(l.opts.BatchSize, l.mayClaim(now), l.claimQ.len())
		if n <= 0 {
			return
		}
		batch := make([]*item, 0, n)
		for l.claimQ.len() > 0 && len(batch) < n {
			if it := l.claimQ.pop(); it.stage == stageClaimQ {
				batch = append(batch, it)
			}
		}
		l.sendClaims(batch)
	}
}

func (l *loop) sendClaims(batch []*item) {
	if len(batch) == 0 {
		return
	}
	requests := make([]*fence.Request, len(batch))
	for i, it := range batch {
		it.stage = stageClaiming
		if it.request.Attempt == 0 {
			it.request = fence.Request{
				Key: it.key, Kind: l.kind, Attempt: it.attempt, Step: it.step, Lease: l.opts.Lease, Fingerprint: it.fingerprint,
				InPlace: l.opts.InPlace,
				Origin: fencedriver.Origin{
					Source: l.info.System, Topic: it.origin.Topic, Partition: it.origin.Partition, Offset: it.origin.Offset,
					Timestamp: it.origin.Timestamp.UnixMilli(),
				},
			}
		}
		requests[i] = &it.request
	}
	l.claiming++
	l.claimable += len(batch)
	go func() {
		ctx, cancel := context.WithTimeout(l.calls, l.requestTime)
		answers := l.space.Claim(ctx, requests)
		cancel()
		l.post(func() { l.claimed(batch, answers) })
	}()
}

func (l *loop) claimed(batch []*item, answers []fence.Claimed) {
	now := time.Now()
	l.claiming--
	l.claimable -= len(batch)
	failed := 0
	var err error
	for i, it := range batch {
		a := &answers[i]
		if a.Err != nil {
			if l.claimFailed(it, a.Err, now) {
				failed++
				err = a.Err
			}
			continue
		}
		it.request = fence.Request{}
		it.tries = 0
		if a.Hold != nil {
			it.hold = a.Hold
			it.ran, it.doubt, it.probe, it.ownProbe, it.probes = false, false, false, false, 0
			l.holds++
		}
		l.answered(it, a, now)
	}
	l.storeAnswered(failed == len(batch), err, now)
}

// claimFailed sends an item back to its claim and reports whether the store is
// to blame.
func (l *loop) claimFailed(it *item, err error, now time.Time) bool {
	notMade := errors.Is(err, fencedriver.ErrTooLate) || errors.Is(err, fencedriver.ErrReleased)
	switch {
	case l.leaving(it):
		if !notMade {
			l.space.Abandon(&it.request)
		}
		l.drop(it)
	case notMade: // ask again as a new claim
		it.request = fence.Request{}
		l.toClaim(it)
	default:
		it.cause = err
		if errors.Is(err, fencedriver.ErrUnreadable) {
			l.opts.Logger.Error("oncefence: a stored record cannot be read: its deliveries wait", "idempotency_key", it.key.Text(), "error", err)
		}
		if l.alone == it {
			l.alone = nil
			it.stage = stageSuspect
			l.suspects.push(it)
			return true
		}
		l.later(it, now)
		return !errors.Is(err, fencedriver.ErrUnreadable)
	}
	return false
}

// storeAnswered keeps the store's back-off.
func (l *loop) storeAnswered(allFailed bool, err error, now time.Time) {
	if !allFailed {
		if !l.storeDown.IsZero() {
			l.opts.Logger.Info("oncefence: the fence store answers again", "after", now.Sub(l.storeDown).Round(time.Millisecond))
		}
		l.storeDown, l.storeTries, l.storeRetry = time.Time{}, 0, time.Time{}
		return
	}
	if l.storeDown.IsZero() {
		l.storeDown = now
		l.opts.Logger.Error("oncefence: the fence store does not answer: no effect starts until it does", "error", err)
	}
	l.storeRetry = now.Add(backoff(l.storeTries))
	l.storeTries++
}

// answered goes on with what a claim met.
func (l *loop) answered(it *item, a *fence.Claimed, now time.Time) {
	if a.Hold != nil && l.leaving(it) {
		l.giveBack(it)
		return
	}
	it.answer = a.Answer
	switch a.Answer {
	case fencedriver.New:
		l.decide(it, DecisionNew, "")
		l.ready(it, now)
	case fencedriver.InDoubt:
		l.inDoubt(it, now)
	case fencedriver.Duplicate:
		it.effectID = a.Record.EffectID
		l.end(it, DecisionDuplicate)
	case fencedriver.Superseded:
		l.end(it, DecisionSuperseded)
	case fencedriver.Held:
		l.heldBy(it, a, now)
	case fencedriver.GivingUp:
		r := it.hold.Record()
		it.doubt, it.verdict = r.InDoubt, fence.Verdict{InDoubt: r.InDoubt, Reason: r.Reason}
		l.deadLetter(it, "", r.Reason, nil)
	case fencedriver.Requeuing:
		r := it.hold.Record()
		it.doubt, it.verdict = r.InDoubt, fence.Verdict{InDoubt: r.InDoubt, Reason: r.Reason}
		it.wait = max(0, time.Duration(r.Due-l.storeNow())*time.Microsecond)
		l.produceCopy(it)
	case fencedriver.Conflict:
		it.conflict = a.Record.Fingerprint
		it.found = &a.Record
		l.deadLetter(it, DecisionConflict, "conflict", fmt.Errorf("the key stands for another payload: fingerprint %s, first seen at %s:%d:%d with %s",
			fence.FormatFingerprint(it.fingerprint), a.Record.Origin.Topic, a.Record.Origin.Partition, a.Record.Origin.Offset, fence.FormatFingerprint(a.Record.Fingerprint)))
	case fencedriver.IsDead:
		if a.Record.Attempt >= it.attempt {
			l.end(it, DecisionDead)
			return
		}
		// A replay's copy that meets a doubt which only a person may clear: its
		// own attempt is buried as well, or it would have no evidence to settle.
		it.found = &a.Record
		l.apply(it, fencedriver.Bury)
	default:
		l.opts.Logger.Error("oncefence: the fence store gave an answer that is not known", "answer", a.Answer, "idempotency_key", it.key.Text())
		l.later(it, now)
	}
}

// heldBy waits for another holder.
func (l *loop) heldBy(it *item, a *fence.Claimed, now time.Time) {
	if it.heldSince.IsZero() {
		it.heldSince = now
		l.decide(it, DecisionHeld, "")
	}
	if now.Sub(it.heldSince) >= l.opts.HeldLimit && !l.opts.InPlace && l.topics.Shortest(it.place.Source) != "" {
		l.move(it, 0, "held")
		return
	}
	wait := min(50*time.Millisecond<<min(it.tries, 5), time.Second)
	if a.Left > 0 {
		wait = min(wait, max(a.Left, time.Millisecond))
	}
	it.tries++
	if l.alone == it {
		l.alone, it.alone = nil, false
	}
	it.stage = stageHeld
	l.held++
	l.timers.add(it, now.Add(wait))
}

// inDoubt decides by the kind of effect what may happen to a key whose last
// holder ended without a word.
func (l *loop) inDoubt(it *item, now time.Time) {
	r := it.hold.Record()
	it.doubt = true
	if _, known := l.doubts[it]; !known {
		l.doubts[it] = time.UnixMicro(r.FirstSeen)
		l.decide(it, DecisionInDoubt, fmt.Sprintf("attempt %d, %d crashes", r.Attempt, r.Takeovers))
	}
	crashed := int(r.Takeovers) >= l.opts.MaxCrashes
	switch {
	case r.Kind != l.kind:
		l.park(it, fmt.Sprintf("doubt left by a consumer of kind %s", r.Kind))
	case l.kind == fencedriver.KindAtMostOnce:
		l.park(it, "in_doubt")
	case l.kind == fencedriver.KindProbed:
		it.ownProbe, it.attemptEnd = false, r.AttemptEnd
		l.askProbe(it, now)
	case crashed:
		l.park(it, crashedReason(r))
	case l.forgotten(it):
		l.park(it, "in_doubt: the first attempt is older than the sink remembers")
	default:
		l.runOrQuarantine(it, now)
	}
}

func crashedReason(r *fencedriver.Record) string {
	return fmt.Sprintf("crashed %d times", r.Takeovers)
}

// forgotten reports whether the sink may no longer know the effect id.
func (l *loop) forgotten(it *item) bool {
	if l.effect.Remembers() == effect.Forever {
		return false
	}
	age := time.Duration(l.storeNow()-it.hold.Record().FirstSeen) * time.Microsecond
	return age > l.effect.Remembers()
}

// runOrQuarantine runs a record in doubt; from the crash before the last that
// is allowed it runs alone, so that it cannot take its neighbours along.
func (l *loop) runOrQuarantine(it *item, now time.Time) {
	if it.alone || int(it.hold.Record().Takeovers) < max(1, l.opts.MaxCrashes-1) {
		l.ready(it, now)
		return
	}
	it.alone = true
	l.apply(it, fencedriver.Release)
}

// pumpSuspects claims the next record that must run alone when nothing else
// runs or is claimed.
func (l *loop) pumpSuspects() {
	for l.suspects.len() > 0 && l.suspects.all()[0].stage != stageSuspect {
		l.suspects.pop()
	}
	if l.suspects.len() == 0 || l.alone != nil || l.claiming > 0 || l.stopping || time.Now().Before(l.storeRetry) {
		return
	}
	if waiting, taken := l.pool.load(); waiting > 0 || taken > 0 {
		return
	}
	l.alone = l.suspects.pop()
	l.sendClaims([]*item{l.alone})
}

// askProbe asks the sink what became of the effect, once the answer is final.
func (l *loop) askProbe(it *item, now time.Time) {
	it.probe = true
	wait := time.Duration(it.attemptEnd-l.storeNow())*time.Microsecond + l.effect.Settled()
	if it.probes > 0 {
		wait = max(wait, l.effect.ProbeBackoff(it.probes))
	}
	if wait <= 0 {
		it.stage = stageReady
		l.runNow(it, now)
		return
	}
	it.stage = stageWaitProbe
	l.timers.add(it, now.Add(wait))
}
