package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/internal/fault"
	"github.com/oncefence/oncefence/requeue"
)

// revoke is a call of Handler.Revoked that waits for its partitions.
type revoke struct {
	parts  []*partition
	by     time.Time
	ending bool
	done   chan struct{}
}

// handler hands the source's events to the loop.
type handler struct{ l *loop }

// Assigned implements driver.Handler.
func (h handler) Assigned(assignments []driver.Assignment) {
	done := make(chan struct{})
	if h.l.post(func() { h.l.assigned(assignments); close(done) }) {
		h.wait(context.Background(), done) //nolint:forbidigo // the loop always answers or ends
	}
}

// Revoked implements driver.Handler.
func (h handler) Revoked(ctx context.Context, partitions []driver.TopicPartition) {
	done := make(chan struct{})
	if h.l.post(func() { h.l.revoked(ctx, partitions, done) }) {
		h.wait(ctx, done)
	}
}

// Lost implements driver.Handler.
func (h handler) Lost(partitions []driver.TopicPartition) {
	done := make(chan struct{})
	if h.l.post(func() {
		for _, tp := range partitions {
			if p := h.l.parts[tp]; p != nil {
				h.l.lose(p)
			}
		}
		close(done)
	}) {
		h.wait(context.Background(), done) //nolint:forbidigo // the loop always answers or ends
	}
}

func (h handler) wait(ctx context.Context, done chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	case <-h.l.over:
	}
}

func (l *loop) assigned(assignments []driver.Assignment) {
	fault.Point(fault.AssignedAfter)
	l.assignments++
	for _, a := range assignments {
		if old := l.parts[a.TopicPartition]; old != nil {
			l.lose(old)
		}
		place, known := l.topics.Lookup(a.Topic)
		if !known {
			place = requeue.Place{Topic: a.Topic, Source: a.Topic, Kind: requeue.SourceTopic}
		}
		p := &partition{
			TopicPartition: a.TopicPartition, loop: l, generation: a.Generation, topicID: a.TopicID, place: place,
			mark: -1, committed: a.Committed, nextFetch: -1, lastStable: -1, highWater: -1, epoch: -1,
		}
		if err := l.checkEpoch(a, p); err != nil {
			l.fail(err)
			return
		}
		l.countPartitions(a)
		l.parts[a.TopicPartition] = p
		if l.allPaused {
			l.source.Pause([]driver.TopicPartition{a.TopicPartition})
		}
	}
}

// countPartitions notices a changed partition count: under the scope with
// partition a key then stands for another partition.
func (l *loop) countPartitions(a driver.Assignment) {
	if !l.fenced || a.Partitions == 0 {
		return
	}
	before := l.counts[a.Topic]
	if before != 0 && before != a.Partitions && l.opts.Scope == fence.ScopePartition {
		if place, _ := l.topics.Lookup(a.Topic); place.Kind == requeue.SourceTopic {
			l.opts.Logger.Warn("oncefence: the topic's partition count has changed: a record that is produced again may land on another partition and is then another key; consider the scope topic or id",
				"topic", a.Topic, "before", before, "now", a.Partitions)
		}
	}
	l.counts[a.Topic] = max(before, a.Partitions)
}

func (l *loop) revoked(ctx context.Context, partitions []driver.TopicPartition, done chan struct{}) {
	fault.Point(fault.RevokedBefore)
	r := &revoke{by: time.Now().Add(l.opts.DrainTimeout), done: done}
	if half := l.source.Info().RebalanceTimeout / 2; half > 0 && half < l.opts.DrainTimeout {
		r.by = time.Now().Add(half)
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(r.by) {
		r.by = deadline
	}
	for _, tp := range partitions {
		if p := l.parts[tp]; p != nil && !p.leaving {
			p.leaving = true
			l.dropUnstarted(p)
			r.parts = append(r.parts, p)
		}
	}
	l.revokes = append(l.revokes, r)
}

// busy counts the deliveries that are under way, those of partitions that are
// gone included.
func (l *loop) busy() (n int) {
	for _, p := range l.parts {
		n += p.busy()
	}
	kept := l.gone[:0]
	for _, p := range l.gone {
		if b := p.busy(); b > 0 {
			n += b
			kept = append(kept, p)
		}
	}
	clear(l.gone[len(kept):])
	l.gone = kept
	return n
}

// pumpRevokes ends revokes whose partitions are drained, or whose time is over:
// it commits the settled prefix and lets the partitions go.
func (l *loop) pumpRevokes(now time.Time) {
	for _, r := range l.revokes {
		if r.ending || l.committing {
			continue
		}
		busy := 0
		for _, p := range r.parts {
			if !p.gone {
				busy += p.busy()
			}
		}
		if busy > 0 && now.Before(r.by) {
			continue
		}
		r.ending = true
		l.commit(r.parts, func() { l.revokeEnded(r) })
	}
	kept := l.revokes[:0]
	for _, r := range l.revokes {
		if r.done != nil {
			kept = append(kept, r)
		}
	}
	clear(l.revokes[len(kept):])
	l.revokes = kept
}

func (l *loop) revokeEnded(r *revoke) {
	for _, p := range r.parts {
		l.forget(p)
	}
	close(r.done)
	r.done = nil
}

// lose ends an assignment that is gone already: nothing new starts, what runs
// may seal but not commit.
func (l *loop) lose(p *partition) {
	if p.gone {
		return
	}
	p.leaving = true
	l.dropUnstarted(p)
	l.forget(p)
}

func (l *loop) forget(p *partition) {
	if !p.gone && p.busy() > 0 {
		l.gone = append(l.gone, p)
	}
	p.gone = true
	if l.parts[p.TopicPartition] == p {
		delete(l.parts, p.TopicPartition)
	}
	delete(l.full, p)
}

// fail ends the run with an error.
func (l *loop) fail(err error) {
	if l.failure == nil {
		l.failure = err
		l.opts.Logger.Error("oncefence: the consumer stops", "error", err)
	}
	l.stop(time.Now())
}

// stop begins to drain: nothing new starts.
func (l *loop) stop(now time.Time) {
	if l.stopping {
		return
	}
	l.stopping = true
	l.drainBy = now.Add(l.opts.DrainTimeout)
	for _, p := range l.parts {
		l.dropUnstarted(p)
	}
}

// drained reports whether the run is over: all that ran has ended and the last
// commit was answered, or the time for that is over.
func (l *loop) drained(now time.Time) bool {
	late := !now.Before(l.drainBy)
	if late && !l.cutOff {
		l.cutOff = true
		l.drainBy = now.Add(min(l.opts.Lease/4, 2*time.Second))
		for _, c := range l.running(nil) {
			c.end(context.Canceled, context.Canceled, now)
		}
		return false
	}
	busy := l.busy()
	if !late && (busy > 0 || l.applying > 0 || len(l.producing) > 0 || l.claiming > 0) {
		return false
	}
	if l.committing {
		if late && !now.Before(l.drainBy.Add(l.requestTime)) {
			l.left = multierror.Append(l.left, errors.New("the last commit was not answered: its records are delivered again"))
			return true
		}
		return false
	}
	if !l.finalCommit {
		l.finalCommit, l.finalAt = true, now
		l.abandoned = busy
		all := make([]*partition, 0, len(l.parts))
		for _, p := range l.parts {
			all = append(all, p)
		}
		l.commit(all, nil)
		return !l.committing && !l.markLeft(now)
	}
	return !l.markLeft(now)
}

// markLeft reports whether the last commits still go into the marker. That is
// worth a little wait, not more: the next assignment writes them as well.
func (l *loop) markLeft(now time.Time) bool {
	l.pumpMark(now)
	return (l.marking || l.unmarked) && now.Before(l.finalAt.Add(lastMarkWait))
}

// leftError says what a stop left behind.
func (l *loop) leftError() error {
	if l.abandoned == 0 {
		return l.left.ErrorOrNil()
	}
	return multierror.Append(l.left, fmt.Errorf("%d deliveries were still under way after the drain time of %v: their claims end with their lease, and they are delivered again", l.abandoned, l.opts.DrainTimeout)).ErrorOrNil()
}
