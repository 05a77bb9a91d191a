package kafkasource

import (
	"fmt"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Pause implements [driver.Source]. Partitions that the member does not have are
// passed over.
func (s *source) Pause(tps []driver.TopicPartition) { s.setPaused(tps, true) }

// Resume implements [driver.Source].
func (s *source) Resume(tps []driver.TopicPartition) { s.setPaused(tps, false) }

func (s *source) setPaused(tps []driver.TopicPartition, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tp := range tps {
		if h := s.holdings[tp]; h != nil && h.paused != paused {
			h.paused = paused
			s.applyPause(h)
		}
	}
	s.wake()
}

// applyPause tells the client; mu is held.
func (s *source) applyPause(h *holding) {
	m := map[string][]int32{h.Topic: {h.Partition}}
	if h.paused || h.backingOff || h.stuck != nil {
		s.client.PauseFetchPartitions(m)
		return
	}
	s.client.ResumeFetchPartitions(m)
}

// fail tells an error of a partition and leaves the partition alone for a
// while: the client would fetch it again at once.
func (s *source) fail(h *holding, err error) driver.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backOff(h)
	return h.errorBatch(fmt.Errorf("topic %s partition %d at offset %d: %w", h.Topic, h.Partition, h.next, err))
}

// stand tells that a partition stands still, now and again later.
func (s *source) stand(h *holding, err error) driver.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.stuck = err
	s.backOff(h)
	return h.errorBatch(err)
}

// backOff pauses a partition for a second, doubling to 30 s with each failure;
// mu is held.
func (s *source) backOff(h *holding) {
	wait := min(time.Second<<min(h.failures, 5), 30*time.Second)
	h.failures++
	h.backingOff = true
	s.applyPause(h)
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed || s.holdings[h.TopicPartition] != h {
			return
		}
		if h.stuck != nil {
			s.pending = append(s.pending, h.errorBatch(h.stuck))
			s.backOff(h)
			s.wake()
			return
		}
		h.backingOff = false
		s.applyPause(h)
	})
}
