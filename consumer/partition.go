package consumer

import (
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue"
)

// partition is one assignment of one partition: its window of deliveries that
// are not settled, in delivery order, and the low-water mark before them.
type partition struct {
	driver.TopicPartition
	loop       *loop
	generation uint64
	topicID    [16]byte
	place      requeue.Place

	window []entry // from the oldest unsettled delivery on
	head   int
	base   int // number of the first entry, counted over the assignment
	open   int // deliveries in window that are not settled
	bytes  int

	mark      int64 // next offset to commit; -1: nothing settled yet
	epoch     int32 // leader epoch of the last record before mark
	committed int64
	adopted   bool // committed without our metadata: written at the next commit

	nextFetch  int64
	lastStable int64
	highWater  int64
	stableAt   time.Time // since when lastStable has not moved while records wait
	headSince  time.Time // since when the oldest delivery is the oldest
	fullSince  time.Time
	paused     bool
	leaving    bool        // being revoked: nothing new starts
	halted     atomic.Bool // the same, for workers
	gone       bool        // revoked or lost
	fetchErr   error
}

// entry is one delivery in a window. What is settled keeps only where it was, so
// that a record that does not end does not keep those behind it in memory.
type entry struct {
	it    *item // nil: settled
	next  int64 // the offset behind it
	epoch int32
}

func (p *partition) add(it *item, now time.Time) {
	if p.open == 0 {
		p.headSince = now
	}
	it.part, it.index = p, p.base+len(p.window)
	p.window = append(p.window, entry{it: it, next: it.rec.Offset + 1, epoch: it.rec.LeaderEpoch})
	p.open++
	p.bytes += it.bytes()
}

// settle marks a delivery as settled and moves the mark over the settled
// prefix.
func (p *partition) settle(it *item, now time.Time) {
	it.stage = stageSettled
	p.open--
	p.bytes -= it.bytes()
	p.window[it.index-p.base].it = nil
	moved := false
	for p.head < len(p.window) && p.window[p.head].it == nil {
		p.mark, p.epoch = p.window[p.head].next, p.window[p.head].epoch
		p.head++
		moved = true
	}
	if !moved {
		return
	}
	p.headSince = now
	if p.head == len(p.window) {
		p.base += p.head
		p.window, p.head = p.window[:0], 0
		// Markers and compacted offsets behind the last record are not delivered.
		p.mark = max(p.mark, p.nextFetch)
	} else if p.head > 1024 && p.head*2 > len(p.window) {
		n := copy(p.window, p.window[p.head:])
		clear(p.window[n:])
		p.base += p.head
		p.window, p.head = p.window[:n], 0
	}
}

// pass moves the mark over what the source has passed without a delivery while
// nothing is under way: a marker or the records of an aborted transaction. Left
// behind them, the position would be one that retention removes, and the
// partition would stand still at the next start.
func (p *partition) pass() {
	if p.span() == 0 && p.nextFetch > max(p.mark, p.committed, 0) {
		p.mark = p.nextFetch
	}
}

// span is the number of deliveries from the oldest unsettled one on.
func (p *partition) span() int { return len(p.window) - p.head }

// oldest returns the delivery that holds back the mark.
func (p *partition) oldest() *item {
	if p.head == len(p.window) {
		return nil
	}
	return p.window[p.head].it
}

// items calls f for the deliveries in the window that are not settled.
func (p *partition) items(f func(*item)) {
	for _, e := range p.window[p.head:] {
		if it := e.it; it != nil && it.stage != stageSettled && it.stage != stageDropped {
			f(it)
		}
	}
}

// replace puts another item in the place of one that was given up.
func (p *partition) replace(old, with *item) {
	with.index = old.index
	p.window[old.index-p.base].it = with
}

// busy counts the deliveries that are in the hands of a worker, the store or
// the producer.
func (p *partition) busy() (n int) {
	p.items(func(it *item) {
		switch it.stage {
		case stageClaiming, stageRunQ, stageRunning, stageApplyQ, stageApplying, stageWaitApply, stageProduceQ, stageProducing:
			n++
		}
	})
	return n
}

// lag is the number of records between the commit and the last stable offset,
// markers included; -1 if it is not known.
func (p *partition) lag() int64 {
	end := p.lastStable
	if end < 0 {
		end = p.highWater
	}
	if end < 0 {
		return -1
	}
	if p.open == 0 && p.nextFetch >= end {
		return 0
	}
	return max(0, end-max(p.committed, 0))
}
