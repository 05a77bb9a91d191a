package memsource_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

var background = context.Background()

func tp(topic string, partition int32) driver.TopicPartition {
	return driver.TopicPartition{Topic: topic, Partition: partition}
}

// member records what a source calls.
type member struct {
	*memsource.Source
	mu       sync.Mutex
	log      []string
	assigned []driver.Assignment
	drain    func(ctx context.Context, tps []driver.TopicPartition)
}

func (m *member) note(what string, tps ...driver.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, tp := range tps {
		m.log = append(m.log, fmt.Sprintf("%s %s/%d", what, tp.Topic, tp.Partition))
	}
}

func (m *member) Assigned(as []driver.Assignment) {
	for _, a := range as {
		m.note("assigned", a.TopicPartition)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.assigned = append(m.assigned, as...)
}

func (m *member) Revoked(ctx context.Context, tps []driver.TopicPartition) {
	if m.drain != nil {
		m.drain(ctx, tps)
	}
	m.note("revoked", tps...)
}

func (m *member) Lost(tps []driver.TopicPartition) { m.note("lost", tps...) }

// said returns the calls since the last time.
func (m *member) said() []string {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	log := m.log
	m.log = nil
	return log
}

// last returns the newest assignment.
func (m *member) last(t *testing.T) driver.Assignment {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.assigned) == 0 {
		t.Fatal("nothing was assigned")
	}
	return m.assigned[len(m.assigned)-1]
}

func start(t *testing.T, b *memsource.Broker, opts *memsource.SourceOptions, topics ...string) *member {
	t.Helper()
	m := &member{Source: b.Source("g", topics, opts)}
	if err := m.Start(background, nil, m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(background) })
	return m
}

// values polls until nothing comes for a second and returns the values, by
// partition in order, and the errors of batches.
func (m *member) values(t *testing.T) (values []string, errs []error) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(background, time.Second)
		batches, err := m.Poll(ctx, 2)
		cancel()
		if err != nil {
			return values, errs
		}
		for _, b := range batches {
			if b.Err != nil {
				errs = append(errs, b.Err)
			}
			for _, r := range b.Records {
				values = append(values, string(r.Value))
			}
		}
	}
}

func fill(t *testing.T, b *memsource.Broker, tp driver.TopicPartition, n int) {
	t.Helper()
	for range n {
		r := driver.Record{Value: []byte(strconv.FormatInt(b.HighWatermark(tp), 10))}
		if _, err := b.ProduceTo(tp, r); err != nil {
			t.Fatal(err)
		}
	}
}

func broker(t *testing.T, topic string, partitions int) *memsource.Broker {
	t.Helper()
	b := memsource.NewBroker(nil)
	if err := b.CreateTopic(topic, &memsource.TopicOptions{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	return b
}
