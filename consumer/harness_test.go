package consumer_test

import (
	"bytes"
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
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

const (
	group = "billing"
	topic = "orders"
)

// bench is a broker, a fence and a ledger that outlive a consumer, all in
// memory and on the bubble's clock.
type bench struct {
	t      *testing.T
	broker *memsource.Broker
	store  fencedriver.Store
	fence  *fence.Fence
	ledger *ledger
	log    *decisions
}

func newBench(t *testing.T, partitions int) *bench {
	t.Helper()
	b := &bench{t: t, broker: memsource.NewBroker(nil), store: memfence.NewStore(nil), ledger: &ledger{booked: map[string]int{}}, log: &decisions{}}
	if err := b.broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	b.fence = b.fenceOver(b.store)
	return b
}

func (b *bench) fenceOver(store fencedriver.Store) *fence.Fence {
	f, err := fence.New(store, &fence.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

// produce writes records with a key and a dedupe id.
func (b *bench) produce(id, key, value string) {
	b.t.Helper()
	r := driver.Record{Topic: topic, Value: []byte(value)}
	if key != "" {
		r.Key = []byte(key)
	}
	if id != "" {
		r.Headers = []driver.Header{{Key: "idempotency-key", Value: []byte(id)}}
	}
	b.produceRecord(r)
}

func (b *bench) produceRecord(r driver.Record) {
	b.t.Helper()
	if _, err := b.broker.Produce(r); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) options() *consumer.Options {
	return &consumer.Options{
		Producer: b.broker.Producer(nil), Logger: slog.New(slog.DiscardHandler), Observer: b.log, Scope: fence.ScopeID,
		EndlessTopics: true,
	}
}

// start runs a consumer until the returned stop is called, which returns what
// Run returned.
func (b *bench) start(e effect.Effect, opts *consumer.Options) (c *consumer.Consumer, stop func() error) {
	b.t.Helper()
	c, err := consumer.New(b.broker.Source(group, []string{topic}, nil), b.fence, e, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() error {
		cancel()
		err := <-ended
		if left := c.Leftovers(); err == nil && left != "" {
			b.t.Errorf("after a clean stop the loop still counts %s", left)
		}
		return err
	}
}

// runFor runs a consumer for a time of the bubble and fails on an error.
func (b *bench) runFor(d time.Duration, e effect.Effect, opts *consumer.Options) {
	b.t.Helper()
	_, stop := b.start(e, opts)
	time.Sleep(d)
	synctest.Wait()
	if err := stop(); err != nil {
		b.t.Fatalf("Run: %v", err)
	}
}

func (b *bench) committed(partition int32) int64 {
	offset, ok := b.broker.Committed(group, driver.TopicPartition{Topic: topic, Partition: partition})
	if !ok {
		return -1
	}
	return offset.Offset
}

func (b *bench) deadLetters() []driver.Record { return b.broker.Records(topic + "." + group + ".dlq") }

func header(r driver.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// ledger is the sink: it counts what was applied, by payload.
type ledger struct {
	mu     sync.Mutex
	booked map[string]int
	order  []string
}

func (l *ledger) book(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.booked[what]++
	l.order = append(l.order, what)
}

func (l *ledger) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.booked[what]
}

func (l *ledger) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.order)
}

func (l *ledger) bookEffect(_ context.Context, in effect.Input) (effect.Receipt, error) {
	l.book(string(in.Payload))
	return effect.Receipt{}, nil
}

// decisions is an observer that keeps what was decided.
type decisions struct {
	mu     sync.Mutex
	counts map[string]int
	all    []consumer.Decision
	gauges consumer.Gauges
}

func (d *decisions) Delivered(int)                     {}
func (d *decisions) Ran(string, string, time.Duration) {}
func (d *decisions) Committed(int, int)                {}

func (d *decisions) Decided(x consumer.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	d.counts[x.Decision]++
	d.all = append(d.all, x)
}

func (d *decisions) Gauges(g consumer.Gauges) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gauges = g
}

func (d *decisions) count(decision string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[decision]
}

func (d *decisions) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.counts)
}

func (d *decisions) gauge() consumer.Gauges {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gauges
}

// big is a payload of 900 kB.
var big = bytes.Repeat([]byte("0123456789"), 90_000)

// tightProducer refuses records with more than limit bytes of payload as too
// large.
func (b *bench) tightProducer(limit int) driver.Producer {
	return b.broker.Producer(&memsource.ProducerOptions{OnProduce: func(_ context.Context, r driver.Record) memsource.Fault {
		if len(r.Value) > limit {
			return memsource.Fault{Err: fmt.Errorf("%d bytes: %w", len(r.Value), driver.ErrTooLarge)}
		}
		return memsource.Fault{}
	}})
}

type (
	contextT = context.Context
	recordT  = driver.Record
)

// failingProducer refuses what fails says.
func (b *bench) failingProducer(fails func(driver.Record) bool) driver.Producer {
	return b.broker.Producer(&memsource.ProducerOptions{OnProduce: func(_ context.Context, r driver.Record) memsource.Fault {
		if fails(r) {
			return memsource.Fault{Err: errors.New("not enough replicas")}
		}
		return memsource.Fault{}
	}})
}
