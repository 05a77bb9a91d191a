// Package fieldfaults_test shows right outcomes of field faults that no other
// test shows. docs/field-faults.md says which test shows which.
package fieldfaults_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/test/servers"
)

const (
	group = "billing"
	topic = "orders"
)

func TestMain(m *testing.M) { servers.Main(m) }

var errRefused = errors.New("connection refused")

// bench is a broker and a fence in memory, on the bubble's clock.
type bench struct {
	t      *testing.T
	broker *memsource.Broker
	fence  *fence.Fence
	told   *told
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, partitions int, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, broker: memsource.NewBroker(nil), told: &told{decisions: map[string]int{}}}
		if err := b.broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: partitions}); err != nil {
			t.Fatal(err)
		}
		f, err := fence.New(memfence.NewStore(nil), &fence.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		b.fence = f
		test(t, b)
	})
}

func of(partition int32) driver.TopicPartition {
	return driver.TopicPartition{Topic: topic, Partition: partition}
}

// order is a record with a dedupe id.
func order(id string) driver.Record {
	return driver.Record{Topic: topic, Value: []byte(id), Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(id)}}}
}

// put appends one order for each id.
func (b *bench) put(partition int32, ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		if _, err := b.broker.ProduceTo(of(partition), order(id)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// ids are n of them.
func ids(stem string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(stem, i)
	}
	return out
}

func (b *bench) options() *consumer.Options {
	return &consumer.Options{
		Producer: b.broker.Producer(nil), Logger: slog.New(slog.DiscardHandler), Observer: b.told, Scope: fence.ScopeID, EndlessTopics: true,
	}
}

// wait lets the bubble's time pass until all that is due by then was done.
func (b *bench) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// start runs one member; stop ends it and fails the test on an error.
func (b *bench) start(source driver.Source, e effect.Effect, opts *consumer.Options) (c *consumer.Consumer, stop func()) {
	b.t.Helper()
	return start(b.t, source, b.fence, e, opts)
}

func start(t *testing.T, source driver.Source, f *fence.Fence, e effect.Effect, opts *consumer.Options) (c *consumer.Consumer, stop func()) {
	t.Helper()
	c, err := consumer.New(source, f, e, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func forever() effect.IdempotentOptions {
	return effect.IdempotentOptions{Remembers: effect.Forever}
}

// ledger counts what was applied, by payload.
type ledger struct {
	mu     sync.Mutex
	booked map[string]int
}

func (l *ledger) book(_ context.Context, in effect.Input) (effect.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.booked == nil {
		l.booked = make(map[string]int)
	}
	l.booked[string(in.Payload)]++
	return effect.Receipt{}, nil
}

// once reports how many payloads were booked once, and how many more often.
func (l *ledger) once() (one, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.booked {
		if n == 1 {
			one++
		} else {
			more++
		}
	}
	return one, more
}

// told is the observer.
type told struct {
	mu        sync.Mutex
	decisions map[string]int
	gauges    consumer.Gauges
}

func (o *told) Delivered(int)                     {}
func (o *told) Ran(string, string, time.Duration) {}
func (o *told) Committed(int, int)                {}

func (o *told) Decided(d consumer.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decisions[d.Decision]++
}

func (o *told) Gauges(g consumer.Gauges) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gauges = g
}

func (o *told) count(decision string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.decisions[decision]
}

// partition returns the last gauges of one partition of the source topic.
func (o *told) partition(t *testing.T, n int32) (p consumer.PartitionGauges, skipped int64) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.gauges.Partitions {
		if p.TopicPartition == of(n) {
			return p, o.gauges.SkippedOffsets
		}
	}
	t.Fatalf("partition %d is in none of %+v", n, o.gauges.Partitions)
	return p, 0
}

func (b *bench) deadLetters() []driver.Record { return b.broker.Records(topic + "." + group + ".dlq") }
