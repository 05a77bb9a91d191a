package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
)

// outcome says what becomes of a claim whose effect has run: nothing is unknown,
// since what was not applied is rolled back.
func (t *transaction) outcome(it *item, o effect.Outcome) fencedriver.Transition {
	opts, s := &t.loop.opts, it.shared
	var delay time.Duration
	s.outcome = o
	s.class, delay = effect.Classify(o.Err)
	switch s.class {
	case effect.ClassApplied:
		id := o.Receipt.EffectID
		if id != "" && !fencedriver.ValidEffectID(id) {
			opts.Logger.Warn("oncefence: the sink's effect id cannot be kept (empty, over 255 bytes or with control characters): ours is sealed", "idempotency_key", it.key.Text())
			id, s.outcome.Receipt.EffectID = "", ""
		}
		if id == "" {
			id = it.effectID
		}
		s.op = fencedriver.Seal
		return s.hold.Seal(fencedriver.KindTransactional, id, o.Receipt.Payload)
	case effect.ClassPermanent:
		reason := effect.Reason(o.Err)
		if reason == "" {
			reason = "permanent"
		}
		return s.givesUp(false, reason, o.Err)
	}
	step := int(s.hold.Record().Step)
	if step >= opts.Schedule.Steps() {
		return s.givesUp(false, "retries spent", o.Err)
	}
	s.cause = o.Err
	s.wait = opts.Schedule.Delay(step, delay, rand.Float64)
	s.verdict = fence.Verdict{Reason: errorText(o.Err)}
	s.op = fencedriver.Retry
	tr := s.hold.Retry(s.verdict, s.wait)
	if opts.InPlace { // nobody else may take over before, and this process right then
		tr.Lease = max(s.wait, time.Millisecond)
	}
	return tr
}

// givesUp says that a dead letter follows.
func (s *shared) givesUp(doubt bool, reason string, cause error) fencedriver.Transition {
	s.doubt, s.reason, s.cause = doubt, reason, cause
	s.verdict = fence.Verdict{InDoubt: doubt, Reason: reason}
	if cause != nil {
		s.verdict.Reason = reason + ": " + errorText(cause)
	}
	s.op = fencedriver.GiveUp
	return s.hold.GiveUp(s.verdict)
}

// transacted goes on with the items of a transaction that has ended.
func (l *loop) transacted(t *transaction, now time.Time) {
	delete(l.transactions, t)
	l.pumpTransactions(now)  // the database goes on meanwhile
	if t.items[0].orphaned { // given up: it was rolled back, others go on
		for i := range t.answers {
			if hold := t.answers[i].Hold; hold != nil {
				hold.Drop()
			}
		}
		return
	}
	if !t.returned {
		t.answers = make([]fence.Transacted, len(t.items))
		for i := range t.answers {
			t.answers[i].Err = errGoexit
		}
	}
	failed := 0
	var down error // that speaks of the store
	for i, it := range t.items {
		a := &t.answers[i]
		switch {
		case a.Err == nil:
			it.request, it.tries = fence.Request{}, 0
			l.transactAnswered(it, a, t.took, now)
		case t.faulted(i, it, a.Err):
			l.again(it)
		default:
			failed++
			if l.claimFailed(it, a.Err, now) {
				down = a.Err
			}
		}
	}
	l.storeAnswered(len(t.items), failed, down, now)
}

// faulted reports whether an item failed because of the effects in its
// transaction, and notes who is to blame: it then takes a transaction of its own,
// or its outcome is settled.
func (t *transaction) faulted(i int, it *item, err error) bool {
	s := it.shared
	var suspects int
	var suspect bool
	switch {
	case t.lost != nil && errors.Is(t.lost, fencedriver.ErrTxEnded) && slices.Contains(t.lost.Called, i):
		s.known, s.stands = err, true
		return true
	case t.lost != nil:
		suspects, suspect = len(t.lost.Running), slices.Contains(t.lost.Running, i)
	case !t.returned:
		suspects, suspect = len(t.items), true
	case errors.Is(err, fencedriver.ErrTxEnded): // noticed at the end
		if s.ran {
			s.known, s.stands = err, true
		}
		return true
	case errors.Is(err, fencedriver.ErrCommitRefused), t.ran > 0 && errors.Is(err, context.DeadlineExceeded):
		suspects, suspect = t.ran, s.ran
	default:
		return false
	}
	switch {
	case suspect && suspects == 1:
		s.known = effect.Temporary(err)
	case suspect:
		s.alone = true
	}
	return true
}

// again sends an item whose transaction came to nothing to its next one.
func (l *loop) again(it *item) {
	it.request = fence.Request{}
	if l.leaving(it) {
		l.drop(it)
		return
	}
	l.toClaim(it)
}

// transactAnswered goes on with an item whose transaction was committed, or whose
// claim was not granted.
func (l *loop) transactAnswered(it *item, a *fence.Transacted, took time.Duration, now time.Time) {
	s := it.shared
	if s.ran {
		l.opts.Observer.Ran(l.kind.String(), s.class.String(), took)
	}
	if !a.Answer.Granted() {
		l.answered(it, &a.Claimed, now)
		return
	}
	it.took, it.outcome, it.class, it.wait = took, s.outcome, s.class, s.wait
	it.doubt, it.reason, it.cause, it.verdict = s.doubt, s.reason, s.cause, s.verdict
	if s.op != fencedriver.Release {
		it.shared = nil
	}
	it.heldSince, it.heldTries = time.Time{}, 0
	if it.hold = a.Hold; it.hold == nil {
		it.hold = s.hold // for what is reported; nothing is held any more
	}
	l.holds++
	it.ran = s.ran
	if a.Answer == fencedriver.New && s.op != fencedriver.Release {
		l.decide(it, DecisionNew, "")
	}
	switch s.op {
	case fencedriver.Seal:
		fault.Point(fault.SealAfter)
		l.end(it, DecisionDone)
	case fencedriver.Release:
		l.unhold(it)
		l.again(it)
	case fencedriver.Retry:
		fault.Point(fault.RetryAfter)
		l.retrySaid(it, now)
	case fencedriver.GiveUp:
		l.gaveUp(it)
	default:
		l.answered(it, &a.Claimed, now)
	}
}

// gaveUp writes the dead letter of an item whose verdict was committed.
func (l *loop) gaveUp(it *item) {
	fault.Point(fault.GiveUpAfter)
	if it.doubt {
		r := it.hold.Record()
		l.doubts[it] = time.UnixMicro(r.FirstSeen)
		l.decide(it, DecisionInDoubt, fmt.Sprintf("attempt %d: %s", r.Attempt, it.reason))
	}
	if it.part.gone {
		l.drop(it) // the next owner finishes the dead letter
		return
	}
	l.deadLetter(it, "", it.reason, it.cause)
}

// waitOutside waits for a retry in place without holding the claim: the verdict
// is committed with a lease until then.
func (l *loop) waitOutside(it *item, now time.Time) {
	l.unhold(it)
	it.outgoing, it.op = Record{}, fencedriver.NoOp
	if l.leaving(it) {
		l.drop(it)
		return
	}
	it.stage = stageWaitRetry
	l.timers.add(it, now.Add(it.wait))
}

// replaceTransaction lets other items go on in the place of those of an effect
// that does not return. It reports false if c is no transaction's.
func (l *loop) replaceTransaction(c *effectContext) bool {
	for t := range l.transactions {
		if t.ctx == c {
			delete(l.transactions, t)
			return true
		}
	}
	return false
}

// running are the contexts of all effects that run now.
func (l *loop) running(buf []*effectContext) []*effectContext {
	buf = l.pool.running(buf)
	for t := range l.transactions {
		buf = append(buf, t.ctx)
	}
	return buf
}

// transacting is how many records are in transactions.
func (l *loop) transacting() (n int) {
	for t := range l.transactions {
		n += len(t.items)
	}
	return n
}
