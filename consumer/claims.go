package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
)

// Two requests of a kind at most are under way: one at the store, one behind it
// if it is full. So batches grow by themselves while the store is busy, and
// nothing waits while it is idle.
const requestsUnderWay = 2

// claimedTooEarly is the wait between claim and start above which fewer records
// are claimed ahead: what a killed process had claimed waits for its lease and
// is in doubt then.
const claimedTooEarly = 50 * time.Millisecond

// mayClaim is how many more claims may be made now: for records that are first
// in their lane, which start at once, and for those behind them.
func (l *loop) mayClaim(now time.Time) (first, ahead int) {
	if l.stopping || now.Before(l.storeRetry) || l.marked < l.assignments || l.alone != nil || l.suspects.len() > 0 {
		return 0, 0
	}
	waiting, taken := l.pool.load()
	capacity := l.capacity()
	first = capacity - waiting - taken - l.claimable
	if l.effect.IsBatch() {
		first = l.pool.room() - l.claimable
	}
	if !l.claimsAhead() { // claimed and not started is doubt for nothing
		return first, 0
	}
	if waiting == 0 && taken < capacity && (l.cutShort || l.pending+l.claimable >= l.ahead) {
		l.ahead = min(l.ahead*2, capacity+2*l.opts.BatchSize)
	}
	ahead = l.ahead - l.pending - l.claimable
	return max(first, ahead), ahead
}

// capacity is how many records all workers together can have.
func (l *loop) capacity() int { return l.opts.Concurrency * l.effect.MaxBatch() }

// laneAhead is how many records of one lane may be claimed before the first of
// them has run: enough to keep the lane going, not so many that one hot key
// takes the claims of all others.
func (l *loop) laneAhead() int {
	switch {
	case !l.claimsAhead():
		return 1
	case l.opts.Order == OrderByPartition:
		return l.opts.Concurrency + 2*l.opts.BatchSize
	}
	return 16
}

func (l *loop) pumpClaims(now time.Time) {
	if l.kind == fencedriver.KindTransactional {
		l.pumpTransactions(now)
		return
	}
	for l.claiming < requestsUnderWay {
		queued := l.claimQ.len() + l.aheadQ.len()
		if queued == 0 || (l.claiming > 0 && queued < l.opts.BatchSize) {
			return
		}
		first, ahead := l.mayClaim(now)
		var batch []*item
		batch = l.takeClaims(batch, &l.claimQ, first)
		batch = l.takeClaims(batch, &l.aheadQ, ahead)
		l.cutShort = len(batch) < min(queued, l.opts.BatchSize)
		if len(batch) == 0 {
			return
		}
		l.sendClaims(batch)
	}
}

// takeClaims moves items from a queue to batch until it has limit or is full.
func (l *loop) takeClaims(batch []*item, q *queue, limit int) []*item {
	for limit = min(limit, l.opts.BatchSize); q.len() > 0 && len(batch) < limit; {
		if it := q.pop(); it.stage == stageClaimQ {
			it.stage = stageClaiming
			batch = append(batch, it)
		}
	}
	return batch
}

func (l *loop) sendClaims(batch []*item) {
	requests := make([]*fence.Request, len(batch))
	for i, it := range batch {
		it.stage = stageClaiming
		l.ask(it)
		requests[i] = &it.request
	}
	l.claiming++
	l.claimable += len(batch)
	go func() {
		ctx, cancel := context.WithTimeout(l.calls, l.requestTime)
		fault.Point(fault.ClaimBefore)
		answers := l.space.Claim(ctx, requests)
		fault.Point(fault.ClaimAfter)
		cancel()
		l.post(func() { l.claimed(batch, answers) })
	}()
}

// ask fills in an item's request, unless it is one that was not answered.
func (l *loop) ask(it *item) {
	if it.request.Attempt != 0 {
		return
	}
	it.request = fence.Request{
		Key: it.key, Kind: l.kind, Attempt: it.attempt, Step: it.step, Lease: l.opts.Lease, Fingerprint: it.fingerprint,
		InPlace: l.opts.InPlace,
		Origin: fencedriver.Origin{
			Source: l.info.System, Topic: it.origin.Topic, Partition: it.origin.Partition, Offset: it.origin.Offset,
			Timestamp: it.origin.Timestamp.UnixMilli(),
		},
	}
}

func (l *loop) claimed(batch []*item, answers []fence.Claimed) {
	now := time.Now()
	l.claiming--
	l.claimable -= len(batch)
	failed := 0
	for i := range answers {
		if answers[i].Err != nil {
			failed++
		}
	}
	var err error // that speaks of the store
	for i, it := range batch {
		a := &answers[i]
		if a.Err != nil {
			it.single = it.single || failed < len(batch)
			if l.claimFailed(it, a.Err, now) && !it.single {
				err = a.Err
			}
			continue
		}
		it.request = fence.Request{}
		it.tries, it.single = 0, false
		if a.Hold != nil {
			it.hold = a.Hold
			it.ran, it.doubt, it.probe, it.ownProbe, it.probes = false, false, false, false, 0
			it.steps = nil
			it.heldSince, it.heldTries = time.Time{}, 0
			l.holds++
		}
		l.answered(it, a, now)
	}
	l.storeAnswered(len(batch), failed, err, now)
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
		unreadable := errors.Is(err, fencedriver.ErrUnreadable)
		if unreadable && it.tries%64 == 0 {
			l.opts.Logger.Error("oncefence: a stored record cannot be read: its deliveries wait", "idempotency_key", it.key.Text(), "error", err)
		}
		l.later(it, now)
		return !unreadable
	}
	return false
}

// storeAnswered keeps the store's back-off after a request: failed of its items
// came back with an error, and err speaks of the store if it is not nil. A
// request of which all items failed before, one by one, says nothing.
func (l *loop) storeAnswered(items, failed int, err error, now time.Time) {
	if failed == items && err == nil {
		return
	}
	if failed < items {
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
	if it.part.gone || a.Hold != nil && l.leaving(it) {
		l.giveBack(it)
		return
	}
	if a.Answer != fencedriver.Held {
		l.notHeld(it)
	}
	//exhaustive:enforce
	switch a.Answer {
	case fencedriver.New:
		if l.opts.OutsideWindow == OutsideWindowPark && l.outsideWindow(it) {
			l.park(it, "outside_window")
			return
		}
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
		l.conflicting(it)
	case fencedriver.IsDead:
		if a.Record.Attempt >= it.attempt {
			l.end(it, DecisionDead)
			return
		}
		// A replay's copy that meets a doubt which only a person may clear: its
		// own attempt is buried as well, or it would have no evidence to settle.
		it.found = &a.Record
		l.apply(it, fencedriver.Bury)
	case fencedriver.NoAnswer:
		fallthrough
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
	if l.leaving(it) {
		l.drop(it)
		return
	}
	wait := min(50*time.Millisecond<<min(it.heldTries, 5), time.Second)
	if a.Left > 0 {
		wait = min(wait, max(a.Left, time.Millisecond))
	}
	it.heldTries++
	l.notAlone(it)
	it.alone = false
	it.stage = stageHeld
	if !it.held {
		it.held = true
		l.held++
	}
	l.timers.add(it, now.Add(wait))
}

func (l *loop) notHeld(it *item) {
	if it.held {
		it.held = false
		l.held--
	}
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
	if l.suspects.len() == 0 || l.alone != nil || l.claiming > 0 || l.stopping || l.marked < l.assignments || time.Now().Before(l.storeRetry) {
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
	l.notAlone(it)
	if l.leaving(it) { // the next owner asks
		l.giveBack(it)
		return
	}
	it.stage = stageWaitProbe
	l.timers.add(it, now.Add(wait))
}
