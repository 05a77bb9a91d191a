package kafkasource_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
)

const patience = 20 * time.Second

// member is a source with a handler that takes notes.
type member struct {
	driver.Source
	t *testing.T

	onRevoked func(ctx context.Context, tps []driver.TopicPartition)

	mu      sync.Mutex
	calls   []string
	held    map[driver.TopicPartition]driver.Assignment
	values  []string // of records, by arrival
	batches []driver.Batch
	errs    []error // of batches
	pollErr error   // the last
}

func (m *member) Assigned(as []driver.Assignment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range as {
		m.calls = append(m.calls, fmt.Sprintf("assigned %d", a.Partition))
		m.held[a.TopicPartition] = a
	}
}

func (m *member) Revoked(ctx context.Context, tps []driver.TopicPartition) {
	if m.onRevoked != nil {
		m.onRevoked(ctx, tps)
	}
	m.gone("revoked", tps)
}

func (m *member) Lost(tps []driver.TopicPartition) { m.gone("lost", tps) }

func (m *member) gone(call string, tps []driver.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, tp := range tps {
		m.calls = append(m.calls, fmt.Sprintf("%s %d", call, tp.Partition))
		delete(m.held, tp)
	}
}

// open makes a source that is closed at the end of the test.
func (w *world) open(t *testing.T, group string, topics []string, opts *kafkasource.Options, more ...kgo.Opt) *member {
	t.Helper()
	source, err := kafkasource.New(group, topics, opts, w.options(more...)...)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Source: source, t: t, held: map[driver.TopicPartition]driver.Assignment{}}
	t.Cleanup(func() { m.close() })
	return m
}

// start makes a source that is started.
func (w *world) start(t *testing.T, group string, topics []string, opts *kafkasource.Options, more ...kgo.Opt) *member {
	t.Helper()
	m := w.open(t, group, topics, opts, more...)
	if err := m.Start(t.Context(), nil, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *member) close() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		m.t.Errorf("close: %v", err)
	}
}

// until polls until done returns true.
func (m *member) until(what string, done func() bool) {
	m.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		m.mu.Lock()
		ok := done()
		m.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.t.Fatalf("%s did not happen; calls %q, values %q, errors %v, poll says %v", what, m.calls, m.values, m.errs, m.pollErr)
		}
		m.pollFor(20 * time.Millisecond)
	}
}

// pollFor polls once.
func (m *member) pollFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	batches, err := m.Poll(ctx, 1000)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		m.pollErr = err
		if len(batches) == 0 {
			<-ctx.Done() // errors that come at once are not asked for in a loop
		}
	}
	m.batches = append(m.batches, batches...)
	for _, b := range batches {
		if b.Err != nil {
			m.errs = append(m.errs, b.Err)
		}
		for _, r := range b.Records {
			m.values = append(m.values, string(r.Value))
		}
	}
}

// watch polls for a while.
func (m *member) watch(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		m.pollFor(20 * time.Millisecond)
	}
}

// gets polls until the values have come, and no others.
func (m *member) gets(values ...string) {
	m.t.Helper()
	m.until(fmt.Sprintf("delivery of %q", values), func() bool { return len(m.values) >= len(values) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.values, values) {
		m.t.Fatalf("delivered %q, want %q", m.values, values)
	}
	m.values = nil
}

// holds polls until the member has n partitions.
func (m *member) holds(n int) {
	m.t.Helper()
	m.until(fmt.Sprintf("an assignment of %d partitions", n), func() bool { return len(m.held) == n })
}

func (m *member) commit(t *testing.T, tp driver.TopicPartition, offset int64) {
	t.Helper()
	if errs := m.Commit(t.Context(), []driver.Offset{{TopicPartition: tp, Offset: offset, LeaderEpoch: -1}}); errs[0] != nil {
		t.Fatal(errs[0])
	}
}

func of(topic string, partition int32) driver.TopicPartition {
	return driver.TopicPartition{Topic: topic, Partition: partition}
}

// put produces one record for each value.
func (w *world) put(t *testing.T, tp driver.TopicPartition, values ...string) {
	t.Helper()
	records := make([]driver.Record, len(values))
	for i, v := range values {
		records[i] = driver.Record{Topic: tp.Topic, Partition: tp.Partition, Value: []byte(v)}
	}
	if err := w.produce(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// make makes a topic.
func (w *world) make(t *testing.T, partitions int, configs ...string) string {
	t.Helper()
	m := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		m[configs[i]] = &configs[i+1]
	}
	topic, err := w.topic(t.Context(), partitions, m)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

func (w *world) position(t *testing.T, group string, tp driver.TopicPartition) int64 {
	t.Helper()
	o, _, err := w.committed(t.Context(), group, tp)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
