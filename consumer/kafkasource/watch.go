package kafkasource

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncefence/oncefence/consumer/driver"
)

type listFunc = func(context.Context, ...string) (kadm.ListedOffsets, error)

// watch asks for the watermarks of partitions that have not been heard of, and
// has Poll tell what has moved: the client says nothing of fetches that bring
// no records, such as those that wait for a transaction.
func (s *source) watch() {
	tick := time.NewTicker(s.options.WatermarkInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.life.Done():
			return
		}
		idle := s.idle()
		if len(idle) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(s.life, s.options.WatermarkInterval)
		high, err := list(ctx, s.admin.ListEndOffsets, slices.Clone(idle))
		if err == nil {
			var stable kadm.ListedOffsets
			if stable, err = list(ctx, s.admin.ListCommittedOffsets, idle); err == nil {
				s.tell(high, stable)
			}
		}
		cancel() // an error is tried again at the next tick
	}
}

// idle returns the topics of partitions that were not heard of for an interval.
func (s *source) idle() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var topics []string
	for tp, h := range s.holdings {
		if time.Since(h.heard) >= s.options.WatermarkInterval {
			topics = append(topics, tp.Topic)
		}
	}
	return topics
}

// tell makes batches without records of watermarks that have moved. Those of a
// fetch that came meanwhile are newer.
func (s *source) tell(high, stable kadm.ListedOffsets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tp, h := range s.holdings {
		hw, okHigh := high.Lookup(tp.Topic, tp.Partition)
		ls, okStable := stable.Lookup(tp.Topic, tp.Partition)
		if !okHigh || !okStable || hw.Err != nil || ls.Err != nil {
			continue
		}
		if hw.Offset < h.high || ls.Offset < h.stable || hw.Offset == h.high && ls.Offset == h.stable {
			continue
		}
		h.high, h.stable = hw.Offset, min(ls.Offset, hw.Offset)
		s.pending = append(s.pending, driver.Batch{
			TopicPartition: tp,
			Generation:     h.generation,
			HighWatermark:  h.high,
			LastStable:     h.stable,
			NextFetch:      h.next,
		})
	}
	s.wake()
}
