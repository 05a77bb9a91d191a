package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

// loop is one run of a consumer. All its state belongs to the goroutine of
// run; others hand it functions through post.
//
// Stages: identify (poller's goroutine) → lane and key → claim (batches) → run
// (workers) → seal, or verdict, copy and hand over (batches) → mark → commit.
type loop struct {
	opts      Options
	effect    effect.Effect
	kind      fencedriver.Kind
	fenced    bool
	info      driver.Info
	source    driver.Source
	space     *fence.Space // nil without a fence
	namespace fence.Namespace
	topics    *requeue.Topics
	epochText string

	inbox   chan func()
	fetches chan []fetched
	over    chan struct{} // closed when run has ended

	parts    map[driver.TopicPartition]*partition
	lanes    *lanes
	timers   timers
	pool     *pool
	claimQ   queue // records that are first in their lane
	aheadQ   queue // records behind others, claimed ahead
	applyQ   queue
	produceQ queue
	suspects queue

	claiming            int // claim requests under way
	diffing             int // first payloads that are being read again
	claimable           int // items in them
	applying            int
	producing           map[string]bool // topics with a produce request under way
	holds               int             // claims held
	skipped             int64           // offsets that resets have jumped over
	pending             int             // of these, records that have not run yet
	ahead               int             // how many records may be claimed and not have run
	cutShort            bool            // the last claims were fewer than could be sent
	full                map[*partition]struct{}
	gone                []*partition // not assigned any more, with deliveries under way
	open                int          // deliveries not settled
	bytes               int
	transactions        map[*transaction]struct{} // of Transactional effects
	txRecords, txAtOnce int
	alone               *item // the suspect that runs, or is being claimed
	doubts              map[*item]time.Time
	held                int

	storeRetry time.Time // no requests before, after a failed one
	storeDown  time.Time // since when the store does not answer
	storeTries int
	fullSince  time.Time
	allPaused  bool
	blocked    bool // polled records are not taken in now

	committing  bool
	finalCommit bool
	finalAt     time.Time
	lastCommit  time.Time
	lastMark    time.Time
	purging     bool
	nextPurge   time.Time
	assignments int // counted, to know whether the marker was read after the last one
	marked      int
	highest     map[fencedriver.TopicPartition]int64 // committed by the group at any time
	marking     bool
	unmarked    bool // there are commits that the marker does not have
	revokes     []*revoke
	stopping    bool
	drainBy     time.Time
	cutOff      bool // running effects were told to end
	abandoned   int  // deliveries left to their lease at the end
	counts      map[string]int32
	failure     error             // what ends the run
	left        *multierror.Error // what went wrong while it ended
	lastGauges  time.Time
	lastSweep   time.Time
	contexts    []*effectContext
	doneBuf     []*item
	snapshot    atomic.Pointer[health]
	calls       context.Context //nolint:containedctx // root of store, producer and commit calls; outlives Run's context
	requestTime time.Duration
}

// fetched is one partition's records, identified.
type fetched struct {
	batch driver.Batch
	items []item
}

// queue is a first-in first-out list of items.
type queue struct {
	items []*item
	head  int
}

func (q *queue) len() int        { return len(q.items) - q.head }
func (q *queue) push(it *item)   { q.items = append(q.items, it) }
func (q *queue) all() []*item    { return q.items[q.head:] }
func (q *queue) set(its []*item) { q.items, q.head = its, 0 }

func (q *queue) pop() *item {
	it := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return it
}

// post runs f in the loop's goroutine. It reports false if the loop is over.
func (l *loop) post(f func()) bool {
	select {
	case l.inbox <- f:
		return true
	case <-l.over:
		return false
	}
}

// run is the loop. It returns when it was told to stop and has drained, or when
// it failed.
func (l *loop) run(ctx context.Context) {
	defer close(l.over)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop := ctx.Done()
	for {
		now := time.Now()
		l.fire(now)
		l.pump(now)
		if l.stopping && l.drained(now) {
			return
		}
		timer.Reset(l.nextWake(now))
		var fetches chan []fetched
		if l.blocked = !l.accepts(now); !l.blocked {
			fetches = l.fetches
		}
		select {
		case f := <-l.inbox:
			f()
			l.drainInbox()
		case batches := <-fetches:
			l.fetched(batches)
		case <-l.pool.results:
		case <-timer.C:
		case <-stop:
			stop = nil
			l.stop(time.Now())
		}
		l.collect()
	}
}

func (l *loop) drainInbox() {
	for range 256 {
		select {
		case f := <-l.inbox:
			f()
		default:
			return
		}
	}
}

func (l *loop) collect() {
	done := l.pool.collect(l.doneBuf)
	now := time.Now()
	for i, it := range done {
		l.finished(it, now)
		done[i] = nil
	}
	l.doneBuf = done
}

// pump starts all requests that may start now.
func (l *loop) pump(now time.Time) {
	l.pumpMark(now)
	l.pumpPurge(now)
	l.pumpApplies(now)
	l.pumpProduces()
	l.pumpSuspects()
	l.pumpClaims(now)
	l.pumpRevokes(now)
	l.pumpCommit(now)
}

// nextWake is how long the loop may sleep without an event.
func (l *loop) nextWake(now time.Time) time.Duration {
	wait := time.Second
	soon := func(at time.Time) {
		if !at.IsZero() {
			wait = min(wait, max(at.Sub(now), 0))
		}
	}
	if len(l.timers) > 0 {
		soon(l.timers[0].wake)
	}
	if now.Before(l.storeRetry) {
		soon(l.storeRetry)
	}
	if _, taken := l.pool.load(); taken > 0 || len(l.transactions) > 0 {
		soon(l.lastSweep.Add(l.sweepEvery()))
	}
	if l.blocked {
		soon(now.Add(patience / 2))
	}
	if l.wantsCommit() {
		soon(l.lastCommit.Add(l.opts.CommitInterval))
	}
	for _, r := range l.revokes {
		if !r.ending && !l.committing {
			soon(r.by)
		}
	}
	if l.stopping && now.Before(l.drainBy) {
		soon(l.drainBy)
	}
	return wait
}

// fire wakes the items whose time has come and does what is periodic.
func (l *loop) fire(now time.Time) {
	for len(l.timers) > 0 && !l.timers[0].wake.After(now) {
		it := l.timers[0]
		l.timers.remove(it)
		l.woken(it, now)
	}
	if now.Sub(l.lastSweep) >= l.sweepEvery() {
		l.lastSweep = now
		l.sweep(now)
	}
	if now.Sub(l.lastGauges) >= time.Second {
		l.lastGauges = now
		l.gauges(now)
	}
}

// woken goes on with an item after a timer.
func (l *loop) woken(it *item, now time.Time) {
	switch it.stage {
	case stageWaitDue:
		if it.hop > 0 {
			l.move(it, it.hop, "delay")
			return
		}
		l.enter(it)
	case stageHeld:
		l.toClaim(it)
	case stageWaitProbe:
		it.stage = stageReady
		l.runNow(it, now)
	case stageWaitRetry:
		l.resume(it, now)
	case stageWaitApply:
		l.apply(it, it.op)
	}
}

// resume tries again what failed, or begins a retry in place.
func (l *loop) resume(it *item, now time.Time) {
	switch {
	case it.outgoing.Topic != "":
		it.stage = stageProduceQ
		l.produceQ.push(it)
	case it.op == fencedriver.Begin:
		l.apply(it, fencedriver.Begin)
	case !l.fenced:
		l.ready(it, now)
	default:
		l.unhold(it) // whatever it was, the store knows
		l.toClaim(it)
	}
}

// fetched takes polled records in.
func (l *loop) fetched(batches []fetched) {
	now := time.Now()
	delivered := 0
	for i := range batches {
		f := &batches[i]
		skipped := l.countSkipped(f.batch.Err)
		p := l.parts[f.batch.TopicPartition]
		if p == nil || p.generation != f.batch.Generation || p.leaving || l.stopping {
			continue // of an assignment that is over
		}
		p.fetchErr = f.batch.Err
		if skipped { // it goes on
			p.fetchErr = nil
		}
		if f.batch.Err != nil {
			l.opts.Logger.Warn("oncefence: cannot fetch", "topic", p.Topic, "partition", p.Partition, "error", f.batch.Err)
		}
		if len(f.items) > 0 || f.batch.Err == nil {
			if f.batch.LastStable != p.lastStable || f.batch.LastStable == f.batch.HighWatermark {
				p.stableAt = now
			}
			p.lastStable, p.highWater = f.batch.LastStable, f.batch.HighWatermark
			p.nextFetch = max(p.nextFetch, f.batch.NextFetch)
		}
		delivered += len(f.items)
		for j := range f.items {
			it := &f.items[j]
			it.heapIndex = -1
			p.add(it, now)
			l.open++
			l.bytes += it.bytes()
			l.arrive(it, now)
		}
		p.pass()
		if l.partitionFull(p) && p.fullSince.IsZero() {
			p.fullSince = now
			l.full[p] = struct{}{}
		}
	}
	if delivered > 0 {
		l.opts.Observer.Delivered(delivered)
	}
}

// countSkipped counts what a configured reset has jumped over, also when the
// assignment that was reset is over, and reports whether err was that.
func (l *loop) countSkipped(err error) bool {
	var reset interface{ Skipped() (from, to int64) }
	if !errors.As(err, &reset) {
		return false
	}
	from, to := reset.Skipped()
	if to < 0 {
		return false
	}
	l.skipped += max(0, to-from)
	return true
}

// arrive starts an item on its way.
func (l *loop) arrive(it *item, now time.Time) {
	switch {
	case it.poison != "":
		decision := DecisionPoison
		if it.foreign {
			decision = DecisionForeignCopy
		}
		l.deadLetter(it, decision, it.poison, it.poisonErr)
		return
	case it.due.After(now):
		it.stage = stageWaitDue
		l.timers.add(it, it.due)
		return
	case it.hop > 0:
		l.move(it, it.hop, "delay")
		return
	}
	if it.missingID {
		l.decide(it, DecisionMissingID, "")
	}
	l.enter(it)
}

// enter puts an item into its lane and key, and on to its claim if it is its
// turn.
func (l *loop) enter(it *item) {
	if !l.lanes.enterLane(it) {
		it.stage = stageWaitLane
		return
	}
	l.enterKey(it)
}

func (l *loop) enterKey(it *item) {
	// Without a fence only the slices of a batch must not hold a key twice.
	if (l.fenced || l.effect.IsBatch()) && !l.lanes.enterKey(it) {
		it.stage = stageWaitKey
		return
	}
	l.begin(it)
}

// begin goes on with an item that is alone with its key.
func (l *loop) begin(it *item) {
	if !l.fenced {
		l.ready(it, time.Now())
		return
	}
	l.toClaim(it)
}

// claimsAhead reports whether a record may be claimed before it can start:
// only where a claim that is not used leaves no doubt that matters.
func (l *loop) claimsAhead() bool { return l.kind == fencedriver.KindIdempotent }

func (l *loop) toClaim(it *item) {
	first := l.lanes.isFirst(it)
	switch {
	case it.alone && first:
		it.stage = stageSuspect
		l.suspects.push(it)
	case it.alone:
		it.stage = stageWaitAlone
	case first:
		it.stage = stageClaimQ
		l.claimQ.push(it)
	default:
		it.stage = stageClaimQ
		l.aheadQ.push(it)
	}
}

// ready is called for an item that may run as far as the fence is concerned.
func (l *loop) ready(it *item, now time.Time) {
	it.stage = stageReady
	it.readyAt = now
	if !it.pending {
		it.pending = true
		l.pending++
	}
	if l.lanes.isFirst(it) {
		l.runNow(it, now)
	}
}

func (l *loop) runNow(it *item, now time.Time) {
	it.called = false
	if l.leaving(it) {
		l.giveBack(it)
		return
	}
	it.stage = stageRunQ
	it.readyAt = now
	l.pool.push(it)
}

// leaveLane takes an item out of its lane and lets others move up. What leaves
// with its partition does not: it is dropped, each by itself.
func (l *loop) leaveLane(it *item) {
	first, next := l.lanes.leaveLane(it)
	if next != nil && next.stage == stageWaitLane && !l.leaving(next) {
		l.enterKey(next)
	}
	if first == nil || l.leaving(first) {
		return
	}
	switch first.stage {
	case stageReady:
		l.runNow(first, time.Now())
	case stageClaimQ:
		l.claimQ.push(first) // its place in aheadQ is skipped
	case stageWaitAlone:
		first.stage = stageSuspect
		l.suspects.push(first)
	}
}

// end settles an item: there is lasting evidence.
func (l *loop) end(it *item, decision string) {
	if decision != "" {
		l.decide(it, decision, it.reason)
	}
	l.leave(it)
	if !it.part.gone {
		it.part.settle(it, time.Now())
	} else {
		it.stage = stageSettled
	}
}

// drop ends an item without evidence: its partition went away, or the consumer
// stops. Its record will be delivered again.
func (l *loop) drop(it *item) {
	if it.stage == stageSettled || it.stage == stageDropped {
		return
	}
	l.timers.remove(it)
	l.leave(it)
	if it.request.Attempt != 0 { // asked for without an answer
		l.space.Abandon(&it.request)
		it.request = fence.Request{}
	}
	it.stage = stageDropped
	it.part.open--
	it.part.bytes -= it.bytes()
}

func (l *loop) leave(it *item) {
	if it.stage == stageSettled || it.stage == stageDropped {
		return
	}
	l.open--
	l.bytes -= it.bytes()
	l.unhold(it)
	l.notHeld(it)
	l.notAlone(it)
	delete(l.doubts, it)
	l.leaveLane(it)
	if next := l.lanes.leaveKey(it); next != nil && next.stage == stageWaitKey && !l.leaving(next) {
		l.begin(next)
	}
}

// leaving reports whether nothing new may start for an item.
func (l *loop) leaving(it *item) bool { return it.part.leaving || it.part.gone || l.stopping }

// notAlone lets others run beside an item: it does not run, or not any more.
func (l *loop) notAlone(it *item) {
	if l.alone == it {
		l.alone = nil
	}
}

// notPending takes an item out of the count of those that are claimed and have not run.
func (l *loop) notPending(it *item) {
	if it.pending {
		it.pending = false
		l.pending--
	}
}

func (l *loop) unhold(it *item) {
	l.notPending(it)
	if it.hold != nil {
		it.hold.Drop()
		it.hold = nil
		l.holds--
	}
}

// storeNow estimates the store's clock in microseconds.
func (l *loop) storeNow() int64 {
	if l.space == nil {
		return 0
	}
	return l.space.Now().UnixMicro()
}

// backoff is the wait before the nth try again: 50 ms doubling to 1 s, with
// jitter.
func backoff(tries int) time.Duration {
	d := min(50*time.Millisecond<<min(tries, 5), time.Second)
	return d/2 + rand.N(d/2+1)
}

// later waits before an item is tried again; what is leaving is left to whoever
// comes after.
func (l *loop) later(it *item, now time.Time) {
	l.notAlone(it)
	if l.leaving(it) {
		l.drop(it)
		return
	}
	it.stage = stageWaitRetry
	l.timers.add(it, now.Add(backoff(it.tries)))
	it.tries++
}
