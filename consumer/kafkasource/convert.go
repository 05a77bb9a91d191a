package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// convert makes batches of what the client polled. The error is what concerns
// no partition of this member. Rebalances wait for it to return.
func (s *source) convert(fetches kgo.Fetches) ([]driver.Batch, error) {
	var batches []driver.Batch
	var errs []error
	// Errors first: the records of a partition that has one are not delivered.
	fetches.EachError(func(topic string, partition int32, err error) {
		batch, other := s.partitionError(driver.TopicPartition{Topic: topic, Partition: partition}, err)
		if other != nil {
			errs = append(errs, other)
			return
		}
		batches = append(batches, batch)
	})
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if b, ok := s.batch(p); ok {
			batches = append(batches, b)
		}
	})
	return batches, errors.Join(errs...)
}

// batch converts one partition's records.
func (s *source) batch(p kgo.FetchTopicPartition) (driver.Batch, bool) {
	tp := driver.TopicPartition{Topic: p.Topic, Partition: p.Partition}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holdings[tp]
	if h == nil || h.stuck != nil || p.Err != nil || len(p.Records) == 0 {
		return driver.Batch{}, false
	}
	last := p.Records[len(p.Records)-1].Offset + 1
	if last <= h.next {
		return driver.Batch{}, false // of before a reset
	}
	// Brokers tell the watermarks of before they read: records may lie above.
	h.next, h.high, h.stable = last, max(p.HighWatermark, last), max(p.LastStableOffset, last)
	h.failures, h.heard = 0, time.Now()
	return driver.Batch{
		TopicPartition: tp,
		Generation:     h.generation,
		Records:        records(p.Records, h.topicID),
		HighWatermark:  h.high,
		LastStable:     h.stable,
		NextFetch:      last,
	}, true
}

// records converts records, without the markers of transactions, in two
// allocations.
func records(in []*kgo.Record, topicID [16]byte) []driver.Record {
	count, headers := 0, 0
	for _, r := range in {
		if !r.Attrs.IsControl() {
			count++
			headers += len(r.Headers)
		}
	}
	if count == 0 {
		return nil
	}
	out := make([]driver.Record, 0, count)
	slab := make([]driver.Header, 0, headers)
	for _, r := range in {
		if r.Attrs.IsControl() {
			continue
		}
		begin := len(slab)
		for _, h := range r.Headers {
			slab = append(slab, driver.Header(h))
		}
		var own []driver.Header
		if len(slab) > begin {
			own = slab[begin:len(slab):len(slab)]
		}
		out = append(out, driver.Record{
			Topic:       r.Topic,
			Partition:   r.Partition,
			Offset:      r.Offset,
			LeaderEpoch: r.LeaderEpoch,
			TopicID:     topicID,
			Key:         r.Key,
			Value:       r.Value,
			Headers:     own,
			Timestamp:   r.Timestamp,
			AppendTime:  r.Attrs.TimestampType() == 1,
		})
	}
	return out
}

// partitionError makes a batch of a partition's error, or returns the error when
// it concerns no partition that the member has.
func (s *source) partitionError(tp driver.TopicPartition, err error) (driver.Batch, error) {
	var loss *kgo.ErrDataLoss
	var session *kgo.ErrGroupSession
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		return driver.Batch{}, driver.ErrClosed
	case errors.As(err, &session):
		return driver.Batch{}, fmt.Errorf("group %s: %w", s.group, err)
	case tp.Topic == "" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return driver.Batch{}, errPollEnded
	}
	s.mu.Lock()
	h := s.holdings[tp]
	s.mu.Unlock()
	if h == nil {
		return driver.Batch{}, fmt.Errorf("group %s: topic %s partition %d: %w", s.group, tp.Topic, tp.Partition, err)
	}
	switch {
	case errors.As(err, &loss):
		return s.truncated(h, loss), nil
	case errors.Is(err, kerr.OffsetOutOfRange):
		return s.outOfRange(h), nil
	case errors.Is(err, kerr.UnknownTopicID):
		err = fmt.Errorf("the topic was deleted, and maybe made anew, since the member read its id %x; restart the member to read the new one: %w", h.topicID, err)
	}
	return s.fail(h, err), nil
}

// errorBatch tells an error of a partition.
func (h *holding) errorBatch(err error) driver.Batch {
	return driver.Batch{
		TopicPartition: h.TopicPartition,
		Generation:     h.generation,
		HighWatermark:  h.high,
		LastStable:     h.stable,
		NextFetch:      h.next,
		Err:            err,
	}
}
