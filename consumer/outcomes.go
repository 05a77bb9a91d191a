package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
)

// finished goes on with an item that a worker has handed back.
func (l *loop) finished(it *item, now time.Time) {
	if it.orphaned {
		l.orphanReturned(it)
		return
	}
	if it.called {
		l.opts.Observer.Ran(l.kind.String(), it.class.String(), it.took)
	}
	if it.hold != nil {
		it.hold.Finished()
	}
	if !it.probe {
		l.notPending(it)
	}
	if wait := now.Sub(it.readyAt) - it.took; wait > claimedTooEarly && l.ahead > l.capacity() {
		l.ahead--
	}
	if !it.called {
		if l.leaving(it) {
			l.giveBack(it)
			return
		}
		if !it.ran { // a claim that was not used leaves no doubt
			l.apply(it, fencedriver.Release)
			return
		}
		l.lostClaim(it, "the lease ended before the effect could start")
		return
	}
	if it.probe {
		l.found(it, now)
		return
	}
	l.notAlone(it) // whatever comes now, the effect did not take the process down
	switch it.class {
	case effect.ClassApplied:
		l.leaveLane(it)
		l.seal(it)
	case effect.ClassTemporary:
		l.retry(it, it.outcome.Err)
	case effect.ClassPermanent:
		reason := effect.Reason(it.outcome.Err)
		if reason == "" {
			reason = "permanent"
		}
		l.giveUp(it, reason, it.outcome.Err)
	default:
		l.unknown(it, now)
	}
}

// unknown decides by the kind of effect what an attempt that ended without a
// word means.
func (l *loop) unknown(it *item, now time.Time) {
	if l.fenced {
		it.doubt = true
		if _, known := l.doubts[it]; !known {
			l.doubts[it] = time.UnixMicro(it.hold.Record().FirstSeen)
		}
	}
	l.decide(it, DecisionUnknown, errorText(it.outcome.Err))
	var panicked *effect.PanicError
	if errors.As(it.outcome.Err, &panicked) {
		l.opts.Logger.Error("oncefence: the effect panicked", "idempotency_key", it.key.Text(), "source_id", sourceID(it), "error", panicked, "stack", string(panicked.Stack))
	}
	switch {
	case l.kind == fencedriver.KindAtLeastOnce:
		l.retry(it, it.outcome.Err)
	case errors.Is(it.outcome.Err, effect.ErrStepInDoubt):
		it.cause = it.outcome.Err
		l.park(it, "in_doubt")
	case l.kind == fencedriver.KindProbed:
		it.ownProbe, it.attemptEnd, it.cause = true, l.storeNow(), it.outcome.Err
		l.askProbe(it, now)
	case l.kind == fencedriver.KindIdempotent && !l.forgotten(it):
		l.retry(it, it.outcome.Err)
	default:
		it.cause = it.outcome.Err
		l.park(it, "in_doubt")
	}
}

// found goes on with the answer of a probe.
func (l *loop) found(it *item, now time.Time) {
	fault.Point(fault.ProbeAfter)
	it.probe = false
	receipt, applied := it.finding.Applied()
	switch {
	case applied:
		it.outcome = effect.Outcome{Receipt: receipt}
		l.leaveLane(it)
		l.seal(it)
	case it.finding.NotApplied():
		it.doubt = false
		delete(l.doubts, it)
		r := it.hold.Record()
		switch {
		case it.ownProbe:
			l.retry(it, it.cause)
		case int(r.Takeovers) >= l.opts.MaxCrashes:
			l.giveUp(it, crashedReason(r), errors.New("the sink says that nothing was applied"))
		default:
			l.runOrQuarantine(it, now)
		}
	default:
		if it.probes++; it.probes >= l.effect.ProbeAttempts() {
			l.park(it, "in_doubt: the sink cannot say what happened")
			return
		}
		l.askProbe(it, now)
	}
}

// seal writes done.
func (l *loop) seal(it *item) {
	it.doubt = false
	if !l.fenced {
		l.end(it, DecisionDone)
		return
	}
	if id := it.outcome.Receipt.EffectID; id != "" && !fencedriver.ValidEffectID(id) {
		l.opts.Logger.Warn("oncefence: the sink's effect id cannot be kept (empty, over 255 bytes or with control characters): ours is sealed", "idempotency_key", it.key.Text())
		it.outcome.Receipt.EffectID = ""
	}
	l.apply(it, fencedriver.Seal)
}

// retry says that the attempt is over and another one follows, or that the
// schedule is over.
func (l *loop) retry(it *item, cause error) {
	step := it.step
	if it.hold != nil {
		step = it.hold.Record().Step
	}
	if int(step) >= l.opts.Schedule.Steps() {
		l.giveUp(it, "retries spent", cause)
		return
	}
	it.cause = cause
	it.wait = l.opts.Schedule.Delay(int(step), it.delay, rand.Float64)
	it.verdict = fence.Verdict{InDoubt: it.doubt, Reason: errorText(cause)}
	switch {
	case l.fenced:
		l.apply(it, fencedriver.Retry)
	case l.opts.InPlace:
		it.attempt++
		it.step++
		it.stage = stageWaitRetry
		l.timers.add(it, time.Now().Add(it.wait))
	default:
		l.produceCopy(it)
	}
}

// giveUp ends the record as a dead letter.
func (l *loop) giveUp(it *item, reason string, cause error) {
	it.reason, it.cause = reason, cause
	it.verdict = fence.Verdict{InDoubt: it.doubt, Reason: reason}
	if cause != nil {
		it.verdict.Reason = withCause(reason, cause)
	}
	if l.fenced {
		l.apply(it, fencedriver.GiveUp)
		return
	}
	l.deadLetter(it, DecisionDeadLetter, reason, cause)
}

// park ends the record as a dead letter in doubt.
func (l *loop) park(it *item, reason string) {
	it.doubt = true
	l.giveUp(it, reason, it.cause)
}

// giveBack ends an item whose partition goes away, or when the consumer stops:
// a claim whose effect was not called is released, any other is left to its
// lease.
func (l *loop) giveBack(it *item) {
	switch {
	case it.hold == nil:
		l.drop(it)
	case !it.ran:
		l.apply(it, fencedriver.Release)
	case !it.called && !it.probe: // began in place and was not run: the verdict of before stands
		it.unused, it.wait = true, 0
		it.verdict.InDoubt = it.doubt
		l.apply(it, fencedriver.Retry)
	default:
		l.drop(it)
	}
}

// lostClaim begins again with an item whose claim was taken over.
func (l *loop) lostClaim(it *item, reason string) {
	l.decide(it, DecisionLostClaim, reason)
	l.unhold(it)
	delete(l.doubts, it)
	it.probe, it.outgoing, it.settles = false, Record{}, false
	it.op = fencedriver.NoOp
	l.notAlone(it)
	it.alone = false
	if l.leaving(it) {
		l.drop(it)
		return
	}
	l.toClaim(it)
}

// apply queues a transition for the item's claim.
func (l *loop) apply(it *item, op fencedriver.Op) {
	l.notAlone(it)
	it.op = op
	it.stage = stageApplyQ
	l.applyQ.push(it)
}

// transition makes what is wanted of the store. The steps that this attempt has
// kept go along.
func (l *loop) transition(it *item) fencedriver.Transition {
	t := l.bareTransition(it)
	if it.steps != nil {
		t.Steps = it.steps
	}
	return t
}

func (l *loop) bareTransition(it *item) fencedriver.Transition {
	switch it.op {
	case fencedriver.Seal:
		id := it.outcome.Receipt.EffectID
		if id == "" {
			id = it.effectID
		}
		return it.hold.Seal(l.kind, id, it.outcome.Receipt.Payload)
	case fencedriver.Release:
		return it.hold.Release()
	case fencedriver.Retry:
		t := it.hold.Retry(it.verdict, it.wait)
		if it.unused {
			t.NextStep = it.hold.Record().Step
		}
		if it.part.gone || l.opts.InPlace && l.leaving(it) {
			t.Lease = time.Millisecond // the next owner goes on at once
		}
		return t
	case fencedriver.GiveUp:
		t := it.hold.GiveUp(it.verdict)
		if it.part.gone {
			t.Lease = time.Millisecond
		}
		return t
	case fencedriver.HandOver:
		return it.hold.HandOver(it.verdict)
	case fencedriver.Begin:
		return it.hold.Begin()
	case fencedriver.Bury:
		if it.hold != nil {
			return it.hold.Bury(it.verdict, it.attempt)
		}
		r := it.found
		return fencedriver.Transition{
			Op: fencedriver.Bury, Key: it.key.Digest(), Token: r.Token, Attempt: it.attempt, Step: r.Step, Takeovers: r.Takeovers,
			InDoubt: r.InDoubt, Kind: r.Kind, Fingerprint: r.Fingerprint, Origin: r.Origin, FirstSeen: r.FirstSeen,
			AttemptEnd: r.AttemptEnd, Reason: r.Reason, Steps: r.Steps,
		}
	}
	panic(fmt.Sprintf("oncefence: no transition %s here", it.op)) // unreachable: all callers of apply are above
}

func (l *loop) pumpApplies(now time.Time) {
	if now.Before(l.storeRetry) {
		return
	}
	for l.applyQ.len() > 0 && l.applying < requestsUnderWay && (l.applying == 0 || l.applyQ.len() >= l.opts.BatchSize) {
		n := min(l.opts.BatchSize, l.applyQ.len())
		batch := make([]*item, n)
		transitions := make([]fencedriver.Transition, n)
		for i := range batch {
			it := l.applyQ.pop()
			it.stage = stageApplying
			batch[i], transitions[i] = it, l.transition(it)
		}
		l.applying++
		go func() {
			ctx, cancel := context.WithTimeout(l.calls, l.requestTime)
			fault.Point(fault.ApplyBefore)
			answers := l.space.Apply(ctx, transitions)
			fault.Point(fault.ApplyAfter)
			cancel()
			l.post(func() { l.applied(batch, answers) })
		}()
	}
}

func (l *loop) applied(batch []*item, answers []fencedriver.Applied) {
	now := time.Now()
	l.applying--
	failed := 0
	for i := range answers {
		if answers[i].Err != nil {
			failed++
		}
	}
	var err error // that speaks of the store
	for i, it := range batch {
		if answers[i].Err == nil {
			it.tries, it.single = 0, false
			l.transited(it, &answers[i], now)
			continue
		}
		// The lease is renewed meanwhile. What failed alone waits for itself.
		it.cause = answers[i].Err
		it.single = it.single || failed < len(batch)
		if it.single {
			it.stage = stageWaitApply
			l.timers.add(it, now.Add(backoff(it.tries)))
			it.tries++
			continue
		}
		err = answers[i].Err
		it.stage = stageApplyQ
		l.applyQ.push(it)
	}
	l.storeAnswered(len(batch), failed, err, now)
}

// transited goes on after a transition was answered.
func (l *loop) transited(it *item, a *fencedriver.Applied, now time.Time) {
	if it.orphaned {
		l.orphanSealed(it, a)
		return
	}
	switch it.op {
	case fencedriver.Seal:
		fault.Point(fault.SealAfter)
		l.sealed(it, a)
		return
	case fencedriver.Release:
		fault.Point(fault.ReleaseAfter)
		l.released(it)
		return
	}
	if a.Outcome == fencedriver.Refused {
		l.lostClaim(it, fmt.Sprintf("%s refused: the key is %s with token %d", it.op, a.Record.State, a.Record.Token))
		return
	}
	switch it.op {
	case fencedriver.Retry:
		fault.Point(fault.RetryAfter)
		l.retrySaid(it, now)
	case fencedriver.GiveUp:
		fault.Point(fault.GiveUpAfter)
		if it.part.gone {
			l.drop(it) // the next owner finishes the dead letter
			return
		}
		l.deadLetter(it, "", it.reason, it.cause)
	case fencedriver.HandOver:
		fault.Point(fault.HandOverAfter)
		l.end(it, DecisionRequeued)
	case fencedriver.Begin:
		it.called = false
		it.hold.Begun()
		it.doubt = it.verdict.InDoubt
		l.ready(it, now)
	case fencedriver.Bury:
		fault.Point(fault.BuryAfter)
		l.buried(it)
	}
}

func (l *loop) sealed(it *item, a *fencedriver.Applied) {
	switch a.Outcome {
	case fencedriver.Refused:
		l.decide(it, DecisionLateSeal, fmt.Sprintf("not sealed: the key is %s with token %d, this holder's is %d; receipt of %d bytes, effect id %q",
			a.Record.State, a.Record.Token, it.hold.Token(), len(it.outcome.Receipt.Payload), it.outcome.Receipt.EffectID))
		l.lostClaim(it, "sealed too late")
		return
	case fencedriver.Late:
		l.decide(it, DecisionLateSeal, fmt.Sprintf("sealed over %s: the effect was applied all the same", a.Record.State))
	case fencedriver.Vanished:
		l.decide(it, DecisionVanished, "the store had lost the claim: check its persistence and eviction")
	}
	it.reason = ""
	l.end(it, DecisionDone)
}

func (l *loop) released(it *item) {
	l.decide(it, DecisionReleased, "")
	if l.leaving(it) {
		l.drop(it)
		return
	}
	l.unhold(it)
	l.toClaim(it)
}

func (l *loop) retrySaid(it *item, now time.Time) {
	switch {
	case it.part.gone, it.unused:
		l.drop(it)
	case l.opts.InPlace:
		l.waitInPlace(it, now)
	default:
		l.produceCopy(it)
	}
}

func (l *loop) waitInPlace(it *item, now time.Time) {
	if l.kind == fencedriver.KindTransactional {
		l.waitOutside(it, now)
		return
	}
	it.outgoing = Record{}
	it.op = fencedriver.Begin
	it.alone = false
	l.notAlone(it)
	if l.leaving(it) {
		l.drop(it) // the verdict is said
		return
	}
	it.stage = stageWaitRetry
	l.timers.add(it, now.Add(it.wait))
}

func (l *loop) buried(it *item) {
	decision := DecisionDeadLetter
	if it.doubt || (it.hold == nil && it.found != nil && it.found.InDoubt) {
		decision = DecisionParked
	}
	if it.hold == nil && it.reason == "" {
		it.reason = "a replayed copy met a doubt that only a person may clear: resolve the key first"
	}
	l.end(it, decision)
}

// withCause joins a reason and an error whose text may begin with it.
func withCause(reason string, cause error) string {
	return reason + ": " + strings.TrimPrefix(errorText(cause), reason+": ")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) > 1024 {
		text = text[:1024]
	}
	return text
}
