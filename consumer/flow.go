package consumer

import (
	"context"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// patience is how long the loop leaves polled records where they are before it
// pauses a partition that is full: pausing throws away what the client has
// buffered, so it is for partitions that stand still, not for busy ones.
const (
	patience     = 100 * time.Millisecond
	fullPatience = time.Second
)

func (l *loop) partitionFull(p *partition) bool {
	return p.span() >= l.opts.PartitionRecords || p.bytes >= l.opts.PartitionBytes
}

// accepts reports whether polled records may be taken in. It pauses what stands
// still and resumes what has room again.
func (l *loop) accepts(now time.Time) bool {
	if l.stopping {
		return false
	}
	ok := true
	for p := range l.full {
		if p.gone || p.leaving {
			delete(l.full, p)
			continue
		}
		ok = l.partitionAccepts(p, now) && ok
	}
	return l.allAccept(now) && ok
}

func (l *loop) partitionAccepts(p *partition, now time.Time) bool {
	switch {
	case p.paused && p.span() <= l.opts.PartitionRecords/2 && p.bytes <= l.opts.PartitionBytes/2:
		p.paused, p.fullSince = false, time.Time{}
		delete(l.full, p)
		if !l.allPaused {
			l.source.Resume([]driver.TopicPartition{p.TopicPartition})
		}
	case p.paused:
	case !l.partitionFull(p):
		p.fullSince = time.Time{}
		delete(l.full, p)
	case now.Sub(p.fullSince) < patience:
		return false
	default:
		p.paused = true
		l.source.Pause([]driver.TopicPartition{p.TopicPartition})
	}
	return true
}

// allAccept guards the memory of all partitions together. While it is full new
// records are not claimed either, so that seals always have room.
func (l *loop) allAccept(now time.Time) bool {
	if l.open < l.opts.Records && l.bytes < l.opts.Bytes {
		l.fullSince = time.Time{}
		if l.allPaused && l.open <= l.opts.Records/2 && l.bytes <= l.opts.Bytes/2 {
			l.allPaused = false
			var resume []driver.TopicPartition
			for _, p := range l.parts {
				if !p.paused {
					resume = append(resume, p.TopicPartition)
				}
			}
			l.source.Resume(resume)
		}
		return true
	}
	if l.fullSince.IsZero() {
		l.fullSince = now
	}
	if l.allPaused {
		return true // nothing more comes, but polling goes on
	}
	if now.Sub(l.fullSince) < fullPatience {
		return false
	}
	l.allPaused = true
	var pause []driver.TopicPartition
	for _, p := range l.parts {
		pause = append(pause, p.TopicPartition)
	}
	l.source.Pause(pause)
	return true
}

// poll feeds the loop from the source until ctx ends.
func (l *loop) poll(ctx context.Context, ident *identifier) {
	for tries := 0; ctx.Err() == nil; {
		batches, err := l.source.Poll(ctx, l.opts.BatchSize)
		if len(batches) > 0 {
			tries = 0
			out := make([]fetched, len(batches))
			now := time.Now()
			for i, b := range batches {
				out[i] = fetched{batch: b, items: make([]item, len(b.Records))}
				for j := range b.Records {
					it := &out[i].items[j]
					it.rec = &b.Records[j]
					ident.identify(it, now)
				}
			}
			select {
			case l.fetches <- out:
			case <-ctx.Done():
				return
			case <-l.over:
				return
			}
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case fatal(err):
			l.post(func() { l.fail(err) })
			return
		default:
			l.opts.Logger.Warn("oncefence: polling failed, trying again", "error", err)
			select {
			case <-time.After(backoff(tries)):
			case <-ctx.Done():
			}
			tries++
		}
	}
}

// sweepEvery is how often running effects are looked at: a small part of the
// margin that their holder keeps.
func (l *loop) sweepEvery() time.Duration {
	return min(max(l.opts.Lease/16, 5*time.Millisecond), 100*time.Millisecond)
}

// sweep ends the contexts of effects whose lease or time is over, gives up
// those that do not return, and frees what waits behind slow ones.
func (l *loop) sweep(now time.Time) {
	l.contexts = l.running(l.contexts[:0])
	for i, c := range l.contexts {
		l.contexts[i] = nil
		ended, _ := c.state()
		if !ended.IsZero() {
			if now.Sub(ended) > l.opts.Lease && !l.stopping {
				l.giveUpOn(c)
			}
			continue
		}
		if now.After(c.deadline) {
			c.end(context.DeadlineExceeded, context.DeadlineExceeded, now)
			continue
		}
		for _, it := range c.items {
			if it.hold != nil && !it.hold.Live(now) {
				c.end(context.Canceled, errLeaseEnded, now)
				break
			}
		}
	}
	l.pool.unstick(now, 5*time.Millisecond)
	if l.stopping || len(l.revokes) > 0 || len(l.gone) > 0 {
		l.giveBackQueued()
	}
}

// giveBackQueued takes what may not start any more from the workers' queue.
func (l *loop) giveBackQueued() {
	for _, it := range l.pool.remove(l.leaving) {
		l.giveBack(it)
	}
}

// giveUpOn goes on without an effect that does not return although its context
// has ended: its record begins again with a claim of its own, when the lease of
// this one is over.
func (l *loop) giveUpOn(c *effectContext) {
	if !l.replaceTransaction(c) && !l.pool.replace(c) {
		return
	}
	for _, it := range c.items {
		l.decide(it, DecisionAbandoned, "the effect did not return a lease after its context had ended")
		fresh := &item{
			rec: it.rec, part: it.part, key: it.key, fingerprint: it.fingerprint, effectID: it.effectID, place: it.place, copy: it.copy,
			headers: it.headers, origin: it.origin, attempt: it.attempt, step: it.step, heapIndex: -1, stage: stageRunning,
		}
		it.orphaned = true
		l.lanes.replace(it, fresh)
		it.part.replace(it, fresh)
		l.notAlone(it)
		delete(l.doubts, it)
		l.notPending(it)
		if it.hold != nil {
			l.holds--
		}
		switch {
		case l.leaving(fresh):
			l.drop(fresh)
		case l.fenced:
			l.toClaim(fresh)
		default:
			fresh.outcome.Err = context.DeadlineExceeded
			l.unknown(fresh, time.Now())
		}
	}
}

// dropUnstarted ends what has not started of a partition that goes away.
func (l *loop) dropUnstarted(p *partition) {
	p.halted.Store(true)
	p.items(func(it *item) {
		switch it.stage {
		case stageWaitDue, stageWaitProbe, stageWaitRetry:
			l.timers.remove(it)
			l.giveBackWaiting(it)
		case stageHeld:
			l.drop(it)
		case stageNew, stageWaitLane, stageWaitKey, stageClaimQ, stageSuspect, stageWaitAlone:
			l.drop(it)
		case stageReady:
			l.giveBack(it)
		}
	})
	for _, it := range l.pool.remove(func(it *item) bool { return it.part == p }) {
		l.giveBack(it)
	}
}

// giveBackWaiting: what waits with a verdict, or after its effect ran, is left
// to its lease; a claim that was not used is released.
func (l *loop) giveBackWaiting(it *item) {
	if it.hold != nil && (it.op == fencedriver.Begin || it.outgoing.Topic != "") {
		l.drop(it)
		return
	}
	l.giveBack(it)
}
