package consumer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
)

// metadataPrefix begins the metadata of our commits; the epoch id of the fence
// follows in hex.
const metadataPrefix = "oncefence-1:"

// markEvery is how often the highest commits go into the namespace's marker.
const markEvery = 5 * time.Second

// lastMarkWait is how long a stop waits for the last of them.
const lastMarkWait = 2 * time.Second

func (l *loop) uncommitted(p *partition) bool {
	return p.mark >= 0 && (p.mark > p.committed || p.adopted)
}

func (l *loop) wantsCommit() bool {
	if l.committing {
		return false
	}
	for _, p := range l.parts {
		if l.uncommitted(p) {
			return true
		}
	}
	return false
}

func (l *loop) pumpCommit(now time.Time) {
	if l.committing || now.Sub(l.lastCommit) < l.opts.CommitInterval {
		return
	}
	var due []*partition
	for _, p := range l.parts {
		if l.uncommitted(p) {
			due = append(due, p)
		}
	}
	if len(due) > 0 {
		l.commit(due, nil)
	}
}

// commit sends the marks of the partitions; then is called in the loop after
// the answer. Only one commit is under way at a time.
func (l *loop) commit(parts []*partition, then func()) {
	offsets := make([]driver.Offset, 0, len(parts))
	sent := make([]*partition, 0, len(parts))
	for _, p := range parts {
		if l.uncommitted(p) && !p.gone {
			offsets = append(offsets, driver.Offset{TopicPartition: p.TopicPartition, Offset: p.mark, LeaderEpoch: p.epoch, Metadata: l.epochText})
			sent = append(sent, p)
		}
	}
	if len(offsets) == 0 {
		if then != nil {
			then()
		}
		return
	}
	l.committing = true
	l.lastCommit = time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(l.calls, l.requestTime)
		fault.Point(fault.CommitBefore)
		errs := l.source.Commit(ctx, offsets)
		fault.Point(fault.CommitAfter)
		cancel()
		l.post(func() {
			l.committing = false
			l.committed(sent, offsets, errs)
			if then != nil {
				then()
			}
		})
	}()
}

func (l *loop) committed(parts []*partition, offsets []driver.Offset, errs []error) {
	failed := 0
	for i, p := range parts {
		err := errors.New("the source did not answer for this partition")
		if i < len(errs) {
			err = errs[i]
		}
		switch {
		case err == nil:
			p.committed, p.adopted = max(p.committed, offsets[i].Offset), false
			l.unmarked = l.fenced
		case errors.Is(err, driver.ErrNotOwned):
			failed++
			l.opts.Logger.Warn("oncefence: partition lost at commit", "topic", p.Topic, "partition", p.Partition, "error", err)
			l.lose(p)
		default: // not known or failed: the next commit is absolute
			failed++
			if l.finalCommit {
				l.left = multierror.Append(l.left, fmt.Errorf("the last commit of topic %s partition %d at offset %d failed, its records are delivered again: %w", p.Topic, p.Partition, offsets[i].Offset, err))
			}
			l.opts.Logger.Warn("oncefence: commit failed, trying again", "topic", p.Topic, "partition", p.Partition, "offset", offsets[i].Offset, "error", err)
		}
	}
	l.opts.Observer.Committed(len(parts), failed)
}

// mark writes the highest commits into the namespace's marker, and with that
// sees whether the store is still the one it was.
func (l *loop) mark() {
	update := fencedriver.Marker{Committed: make(map[fencedriver.TopicPartition]int64, len(l.parts)), Partitions: maps.Clone(l.counts)}
	for _, p := range l.parts {
		if p.committed >= 0 {
			update.Committed[fencedriver.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = p.committed
		}
	}
	l.marking, l.unmarked = true, false
	l.lastMark = time.Now()
	seen := l.assignments
	go func() {
		ctx, cancel := context.WithTimeout(l.calls, l.requestTime)
		marker, err := l.space.Mark(ctx, update)
		cancel()
		fault.Point(fault.MarkAfter)
		l.post(func() {
			l.marking = false
			switch {
			case errors.Is(err, fence.ErrEpoch):
				l.fail(err)
			case err != nil:
				l.unmarked = true
				l.storeAnswered(1, 1, err, time.Now())
			default:
				l.marked, l.highest = max(l.marked, seen), marker.Committed
			}
		})
	}()
}

// pumpMark asks for the marker after an assignment: no claim is made before it
// is known that the store is still the one it was. After commits it writes them,
// now and then and at the end of a stop.
func (l *loop) pumpMark(now time.Time) {
	if !l.fenced || l.marking || now.Before(l.storeRetry) {
		return
	}
	if l.marked < l.assignments || l.unmarked && (l.finalCommit || now.Sub(l.lastMark) >= markEvery) {
		l.mark()
	}
}

// purgeEvery and purgeBatch pace the removal of expired records, for stores
// that do not expire by themselves: up to some 25,000 a second while there are
// that many.
const (
	purgeEvery = 10 * time.Second
	purgeBatch = 8192
)

// pumpPurge removes expired records beside the work.
func (l *loop) pumpPurge(now time.Time) {
	if !l.fenced || l.purging || l.stopping || now.Before(l.nextPurge) || now.Before(l.storeRetry) {
		return
	}
	l.purging = true
	go func() {
		ctx, cancel := context.WithTimeout(l.calls, l.requestTime)
		n, err := l.space.Purge(ctx, purgeBatch)
		cancel()
		l.post(func() {
			l.purging, l.nextPurge = false, time.Now().Add(purgeEvery)
			switch {
			case err != nil:
				l.opts.Logger.Warn("oncefence: expired records could not be removed, trying again", "error", err)
			case n >= purgeBatch:
				l.nextPurge = time.Now().Add(purgeEvery / 30)
			}
		})
	}()
}

// outsideWindow reports whether the absence of a key says nothing: its record
// is older than sealed keys are kept, and the group was past it before.
func (l *loop) outsideWindow(it *item) bool {
	return it.hold.Record().Prior == nil && l.beforeWindow(it)
}

// beforeWindow is outsideWindow for a key that is absent.
func (l *loop) beforeWindow(it *item) bool {
	retention := l.space.Retention()
	if retention == 0 {
		return false
	}
	highest, known := l.highest[fencedriver.TopicPartition{Topic: it.origin.Topic, Partition: it.origin.Partition}]
	return known && it.origin.Offset < highest && l.space.Now().Sub(it.origin.Timestamp) > retention
}

// checkEpoch compares the epoch id in a commit's metadata with the store's.
func (l *loop) checkEpoch(a driver.Assignment, p *partition) error {
	if !l.fenced || a.Committed < 0 {
		return nil
	}
	text, ours := strings.CutPrefix(a.Metadata, metadataPrefix)
	if _, err := hex.DecodeString(text); !ours || err != nil || len(text) != 32 {
		p.adopted = true
		l.opts.Logger.Info("oncefence: the partition was committed without this fence: records before the commit are not known to it", "topic", a.Topic, "partition", a.Partition, "committed", a.Committed)
		return nil
	}
	if a.Metadata == l.epochText {
		return nil
	}
	if l.opts.AcceptEpoch {
		p.adopted = true
		l.opts.Logger.Warn("oncefence: another fence epoch is accepted: sealed keys of the old one are not known", "topic", a.Topic, "partition", a.Partition, "old", text)
		return nil
	}
	return fmt.Errorf("%w: %s partition %d was committed at offset %d under epoch %s, the store has %s: it was emptied or is not the one used before, so sealed effects could run again; restore or name the right store, or set consumer.Options.AcceptEpoch if it was emptied on purpose",
		fence.ErrEpoch, a.Topic, a.Partition, a.Committed, text, strings.TrimPrefix(l.epochText, metadataPrefix))
}
