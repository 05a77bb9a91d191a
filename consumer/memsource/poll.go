package memsource

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncefence/oncefence/consumer/driver"
)

// watermarks are what a poll tells about a partition besides records.
type watermarks struct{ high, stable, next int64 }

// Poll implements [driver.Source]. Partitions take turns; one poll gives a
// partition as much as limit leaves. A batch without records tells that a
// watermark or the next fetch has moved. It returns ctx's error when ctx ends,
// and [driver.ErrClosed] once Close was called.
func (s *Source) Poll(ctx context.Context, limit int) ([]driver.Batch, error) {
	if hook := s.options.OnPoll; hook != nil {
		if err := hook(ctx); err != nil {
			return nil, err
		}
	}
	for {
		s.broker.mu.Lock()
		closing := s.closing
		var batches []driver.Batch
		if !closing {
			batches = s.gather(limit)
		}
		s.broker.mu.Unlock()
		switch {
		case closing:
			return nil, driver.ErrClosed
		case len(batches) > 0:
			return batches, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.stop.Done():
			return nil, driver.ErrClosed
		}
	}
}

// gather takes records from the partitions in turn.
func (s *Source) gather(limit int) []driver.Batch {
	var batches []driver.Batch
	for _, h := range slices.Clone(s.holdings) {
		if h.ready && !h.draining && !h.paused {
			if b, ok := s.take(h, &limit); ok {
				batches = append(batches, b)
			}
		}
	}
	batches = append(batches, s.resets...)
	s.resets = nil
	// Who was first is last the next time.
	if n := len(s.holdings); n > 1 && len(batches) > 0 {
		s.holdings = append(s.holdings[1:n:n], s.holdings[0])
	}
	return batches
}

// take reads one partition and moves its position.
func (s *Source) take(h *holding, limit *int) (driver.Batch, bool) {
	b := driver.Batch{TopicPartition: h.TopicPartition, Generation: h.generation}
	at, diverged := h.log.diverged(h.position, h.epoch)
	if diverged || h.position < h.log.start || h.position > h.log.next {
		b.HighWatermark, b.LastStable, b.NextFetch = h.log.next, h.log.lastStable(), h.position
		return b, s.outOfRange(h, &b, at, diverged)
	}
	h.standing = false
	if *limit > 0 {
		b.Records, h.position = h.log.read(h.position, *limit)
		*limit -= len(b.Records)
		if n := len(b.Records); n > 0 {
			h.epoch = b.Records[n-1].LeaderEpoch
		}
	}
	b.HighWatermark, b.LastStable, b.NextFetch = h.log.next, h.log.lastStable(), h.position
	now := watermarks{b.HighWatermark, b.LastStable, b.NextFetch}
	if len(b.Records) == 0 && (now == h.said || *limit == 0) {
		return b, false
	}
	h.said = now
	return b, true
}

// outOfRange tells once that a position is gone and, if the source is
// configured to, gives the partition anew at another one.
func (s *Source) outOfRange(h *holding, b *driver.Batch, at int64, diverged bool) bool {
	e := &ResetError{TopicPartition: h.TopicPartition, Position: h.position, Start: h.log.start, End: h.log.next, To: -1}
	switch {
	case s.options.OnReset == Default:
		tell := !h.standing
		h.standing, b.Err = true, e
		return tell
	case diverged:
		e.To = max(at, h.log.start)
	case s.options.OnReset == Latest:
		e.To = h.log.next
	default:
		e.To = h.log.start
	}
	b.Err = e
	s.resets = append(s.resets, *b)
	s.group.committed[h.TopicPartition] = driver.Offset{TopicPartition: h.TopicPartition, Offset: e.To, LeaderEpoch: -1}
	s.again([]*holding{h})
	return false
}

// again takes holdings away as lost and gives them anew.
func (s *Source) again(hs []*holding) {
	s.drop(hs)
	s.push(event{kind: lost, holdings: hs})
	s.assign(names(hs))
	s.wakeUp()
}

// ResetError is a batch's error that says that a position is not in the log any
// more: removed by retention, or truncated.
type ResetError struct {
	driver.TopicPartition
	Position   int64 // what was to be read next
	Start, End int64 // of the log
	// To is where the partition goes on, -1: it stands still. The jump is a
	// new assignment; its position is committed.
	To int64
}

// Error names the partition, the position and the log.
func (e *ResetError) Error() string {
	what := fmt.Sprintf("topic %s partition %d: position %d is not in the log, which is [%d, %d]", e.Topic, e.Partition, e.Position, e.Start, e.End)
	if e.To < 0 {
		return what + ": the partition stands still; set OnReset, or commit another position and restart"
	}
	return fmt.Sprintf("%s: goes on at %d", what, e.To)
}

// Skipped returns where the partition was and where it goes on, -1: nowhere.
func (e *ResetError) Skipped() (from, to int64) { return e.Position, e.To }

// Pause implements [driver.Source].
func (s *Source) Pause(tps []driver.TopicPartition) { s.setPaused(tps, true) }

// Resume implements [driver.Source].
func (s *Source) Resume(tps []driver.TopicPartition) { s.setPaused(tps, false) }

func (s *Source) setPaused(tps []driver.TopicPartition, paused bool) {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	for _, tp := range tps {
		if h := s.holding(tp); h != nil {
			h.paused = paused
		}
	}
	s.wakeUp()
}
