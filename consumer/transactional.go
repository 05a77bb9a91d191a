package consumer

import (
	"errors"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
)

// Effects of kind Transactional take a shorter way through the loop: there is no
// claim before the effect and no seal after it. Records that are first in their
// lane and key are put together; one transaction of the fence's database claims
// their keys, runs their effects and writes what becomes of them. What does not
// end as done is committed as a claim with a verdict, and goes the way of the
// other kinds from there: copy and hand over, dead letter and bury.

// startsFor is how long a transaction goes on to start effects: what is finished
// is not kept from its commit by a long row of slow ones.
const startsFor = 500 * time.Millisecond

// transaction is one batch under way. It belongs to its goroutine until that
// posts it.
type transaction struct {
	loop     *loop
	ctx      *effectContext
	items    []*item
	answers  []fence.Transacted
	lost     *effect.TxError // the effects broke it; places are those of items
	returned bool            // the effects did not end the goroutine
	ran      int             // effects that ran to their outcome
	took     time.Duration   // of one of them, on average
}

// shared is what an item needs beside its place in a transaction. It outlives
// transactions that came to nothing.
type shared struct {
	outside bool  // an absent key says nothing, see outsideWindow
	alone   bool  // takes a transaction of its own: it may have broken one
	known   error // the outcome, from an earlier transaction: the effect is not run
	stands  bool  // known, and what the effect wrote may stand
	sharing
}

// sharing is what a transaction decided about one item.
type sharing struct {
	hold    *fence.Hold
	op      fencedriver.Op
	ran     bool // the effect ran to its outcome
	outcome effect.Outcome
	class   effect.Class
	wait    time.Duration
	doubt   bool
	reason  string
	cause   error
	verdict fence.Verdict
}

// checkTransactional refuses an effect that the fence's transactions are not for.
func checkTransactional(f *fence.Fence, e effect.Effect) error {
	store, ok := f.Transactor()
	if !ok {
		return errors.New("consumer.New: effects of kind transactional write in the transaction of their fence, and this fence's store has none to share: use pgfence over the database that the effect writes to")
	}
	return e.Accepts(store.Handle())
}

// limitTransactions learns how many records share a transaction and how many
// transactions run at once.
func (l *loop) limitTransactions(f *fence.Fence) {
	store, ok := f.Transactor()
	if !ok || l.kind != fencedriver.KindTransactional {
		return
	}
	claims, atOnce := store.Limits()
	l.txRecords, l.txAtOnce = l.effect.MaxTransaction(), l.opts.Concurrency
	if claims > 0 {
		l.txRecords = min(l.txRecords, claims)
	}
	if atOnce > 0 && atOnce < l.txAtOnce {
		l.txAtOnce = atOnce
		l.opts.Logger.Info("oncefence: the fence store runs fewer transactions at once than Options.Concurrency: raise its pool's connections for more", "transactions", atOnce, "concurrency", l.opts.Concurrency)
	}
	l.transactions = make(map[*transaction]struct{})
}

// pumpTransactions starts transactions with the records whose turn it is.
func (l *loop) pumpTransactions(now time.Time) {
	if l.stopping || now.Before(l.storeRetry) || l.marked < l.assignments {
		return
	}
	for len(l.transactions) < l.txAtOnce {
		batch := l.takeTransaction()
		if len(batch) == 0 {
			return
		}
		l.transact(batch, now)
	}
}

// takeTransaction takes the records of the next transaction: as many as fit for
// a batch form, an even share for the free places otherwise.
func (l *loop) takeTransaction() (batch []*item) {
	limit := l.txRecords
	if !l.effect.IsBatch() {
		free := l.txAtOnce - len(l.transactions)
		limit = max(1, min(limit, (l.claimQ.len()+free-1)/free))
	}
	for l.claimQ.len() > 0 && len(batch) < limit {
		it := l.claimQ.all()[0]
		if it.stage == stageClaimQ && it.shared != nil && it.shared.alone && len(batch) > 0 {
			break
		}
		if l.claimQ.pop(); it.stage != stageClaimQ {
			continue
		}
		batch = append(batch, it)
		if it.shared != nil && it.shared.alone {
			break
		}
	}
	return batch
}

func (l *loop) transact(batch []*item, now time.Time) {
	requests := make([]*fence.Request, len(batch))
	for i, it := range batch {
		it.stage = stageRunning
		it.readyAt = now
		l.ask(it)
		requests[i] = &it.request
		if it.shared == nil {
			it.shared = &shared{}
		}
		s := it.shared
		s.sharing = sharing{}
		s.outside = l.opts.OutsideWindow == OutsideWindowPark && l.beforeWindow(it)
	}
	t := &transaction{loop: l, items: batch}
	t.ctx = &effectContext{parent: l.pool.parent, items: batch, started: now, deadline: now.Add(startsFor + l.effect.MaxRunTime())}
	l.transactions[t] = struct{}{}
	go func() {
		defer func() { // also when an effect ends the goroutine
			t.ctx.release()
			l.post(func() { l.transacted(t, time.Now()) })
		}()
		t.answers = l.space.Transact(t.ctx, requests, t.work)
		t.returned = true
	}()
}

// work runs the effects of a transaction and says what becomes of each claim.
func (t *transaction) work(tx fencedriver.Tx, claimed []fence.Claimed) ([]fencedriver.Transition, error) {
	transitions := make([]fencedriver.Transition, len(claimed))
	var places []int
	var inputs []effect.Input
	for i, it := range t.items {
		hold, s := claimed[i].Hold, it.shared
		if hold == nil {
			continue
		}
		s.hold = hold
		switch {
		case claimed[i].Answer == fencedriver.InDoubt: // another kind's: this one leaves none
			transitions[i] = s.givesUp(true, "doubt left by a consumer of kind "+hold.Record().Kind.String(), nil)
		case claimed[i].Answer != fencedriver.New: // goes on with what another holder began
		case s.known != nil && s.stands:
			transitions[i] = s.givesUp(true, "in_doubt", s.known)
		case s.known != nil:
			transitions[i] = t.outcome(it, effect.Outcome{Err: s.known})
		case s.outside && hold.Record().Prior == nil:
			transitions[i] = s.givesUp(true, "outside_window", nil)
		default:
			places, inputs = append(places, i), append(inputs, t.loop.inputHeld(it, hold.Record()))
		}
	}
	if len(places) == 0 {
		return transitions, nil
	}
	fault.Point(fault.EffectBefore)
	started := time.Now()
	outcomes, err := t.loop.effect.RunTx(t.ctx, tx, inputs, func() bool { return time.Since(started) < startsFor })
	if errors.As(err, &t.lost) {
		t.lost.Running, t.lost.Called = pick(places, t.lost.Running), pick(places, t.lost.Called)
	}
	if err != nil {
		return nil, err
	}
	fault.Point(fault.EffectAfter)
	for n, i := range places {
		it := t.items[i]
		if errors.Is(outcomes[n].Err, effect.ErrNotStarted) {
			it.shared.op = fencedriver.Release
			transitions[i] = it.shared.hold.Release()
			continue
		}
		it.shared.ran = true
		t.ran++
		transitions[i] = t.outcome(it, outcomes[n])
	}
	t.took = time.Since(started) / time.Duration(max(t.ran, 1))
	return transitions, nil
}

func pick(places, of []int) []int {
	out := make([]int, len(of))
	for n, i := range of {
		out[n] = places[i]
	}
	return out
}

// inputHeld is input for a record whose claim is not its item's yet.
func (l *loop) inputHeld(it *item, r *fencedriver.Record) effect.Input {
	in := l.input(it)
	in.Token, in.Attempt, in.Step, in.FirstSeen = r.Token, int(r.Attempt), int(r.Step), time.UnixMicro(r.FirstSeen).UTC()
	return in
}
