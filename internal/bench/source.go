// Package bench measures the whole loop against what its store can do at best
// and against the recipe that most people write, side by side in one run.
package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Shape of the generated records.
const (
	topic      = "bench"
	valueBytes = 200
	keys       = 1000
)

// source generates records for all partitions of one topic and keeps none.
type source struct {
	group      string
	records    int
	partitions int32
	every      time.Duration // between records; 0: as fast as they are taken

	handler driver.Handler
	next    int
	started time.Time
	value   []byte
	out     func(n int, at time.Time) // a record is handed out
}

func newSource(group string, records int, partitions int32, every time.Duration) *source {
	value := make([]byte, valueBytes)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	return &source{group: group, records: records, partitions: partitions, every: every, value: value}
}

// id is the dedupe id of the nth record.
func id(n int) string { return "order-" + strconv.Itoa(n) }

// Info implements driver.Source.
func (s *source) Info() driver.Info {
	return driver.Info{System: "generated", Group: s.group, Topics: []string{topic}, Protocol: "none", Retention: time.Hour}
}

// Start implements driver.Source.
func (s *source) Start(_ context.Context, _ []driver.Subscription, handler driver.Handler) error {
	s.handler = handler
	var all []driver.Assignment
	for p := range s.partitions {
		all = append(all, driver.Assignment{
			TopicPartition: driver.TopicPartition{Topic: topic, Partition: p}, Generation: 1, Committed: -1, Partitions: s.partitions,
		})
	}
	handler.Assigned(all)
	s.started = time.Now()
	return nil
}

// Poll implements driver.Source: the records of one poll are of one partition,
// the partitions take turns.
func (s *source) Poll(ctx context.Context, limit int) ([]driver.Batch, error) {
	if s.next >= s.records {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	n := min(limit, s.records-s.next)
	if s.every > 0 {
		due := s.started.Add(time.Duration(s.next) * s.every)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n = 1
	}
	partition := int32(s.next/max(limit, 1)) % s.partitions
	now := time.Now()
	records := make([]driver.Record, n)
	headers := make([]driver.Header, n)
	for i := range records {
		headers[i] = driver.Header{Key: "idempotency-key", Value: []byte(id(s.next))}
		records[i] = driver.Record{
			Topic: topic, Partition: partition, Offset: int64(s.next), LeaderEpoch: -1, Timestamp: now,
			Key: strconv.AppendInt(nil, int64(s.next%keys), 10), Value: s.value, Headers: headers[i : i+1 : i+1],
		}
		if s.out != nil {
			s.out(s.next, now)
		}
		s.next++
	}
	return []driver.Batch{{
		TopicPartition: driver.TopicPartition{Topic: topic, Partition: partition}, Generation: 1, Records: records,
		HighWatermark: -1, LastStable: -1, NextFetch: int64(s.next),
	}}, nil
}

// Commit implements driver.Source.
func (s *source) Commit(_ context.Context, offsets []driver.Offset) []error {
	return make([]error, len(offsets))
}

// Pause implements driver.Source.
func (s *source) Pause([]driver.TopicPartition) {}

// Resume implements driver.Source.
func (s *source) Resume([]driver.TopicPartition) {}

// Close implements driver.Source.
func (s *source) Close(ctx context.Context) error {
	var all []driver.TopicPartition
	for p := range s.partitions {
		all = append(all, driver.TopicPartition{Topic: topic, Partition: p})
	}
	s.handler.Revoked(ctx, all)
	return nil
}

// nowhere is a producer for a run that has no copies and no dead letters.
type nowhere struct{}

// Ensure implements driver.Producer.
func (nowhere) Ensure(context.Context, []driver.TopicSpec) error { return nil }

// Produce implements driver.Producer.
func (nowhere) Produce(_ context.Context, records []driver.Record) []error {
	errs := make([]error, len(records))
	for i := range errs {
		errs[i] = errUnexpected
	}
	return errs
}

// Close implements driver.Producer.
func (nowhere) Close(context.Context) error { return nil }
