package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/requeue"
)

// What is wrong is refused by New, with a sentence that names it and says what
// to do.
func TestWrongOptionsAreRefused(t *testing.T) {
	negative := -time.Second
	for want, change := range map[string]func(*consumer.Options){
		"consumer.Options.Producer is nil: retries and dead letters need one, for Kafka requeue/kafkarequeue.New": func(o *consumer.Options) { o.Producer = nil },
		"consumer.Options.Concurrency is -1: it must be positive (0 means 32)":                                    func(o *consumer.Options) { o.Concurrency = -1 },
		"consumer.Options.BatchSize is -2: it must be positive (0 means 512)":                                     func(o *consumer.Options) { o.BatchSize = -2 },
		"consumer.Options.MaxCrashes is -3: it must be positive (0 means 3)":                                      func(o *consumer.Options) { o.MaxCrashes = -3 },
		"consumer.Options.PartitionRecords is -4: it must be positive (0 means 4096)":                             func(o *consumer.Options) { o.PartitionRecords = -4 },
		"consumer.Options.PartitionBytes is -5: it must be positive (0 means 8388608)":                            func(o *consumer.Options) { o.PartitionBytes = -5 },
		"consumer.Options.Records is -6: it must be positive (0 means 16384)":                                     func(o *consumer.Options) { o.Records = -6 },
		"consumer.Options.Bytes is -7: it must be positive (0 means 50331648)":                                    func(o *consumer.Options) { o.Bytes = -7 },
		"consumer.Options.Lease is -1s: it must not be negative (0 means 10s)":                                    func(o *consumer.Options) { o.Lease = negative },
		"consumer.Options.Lease is 1ms: the shortest is 50ms":                                                     func(o *consumer.Options) { o.Lease = time.Millisecond },
		"consumer.Options.Lease is 1000h0m0s, longer than the fence's retention of 336h0m0s: a lease is seconds, retention is days": func(o *consumer.Options) {
			o.Lease = 1000 * time.Hour
		},
		"consumer.Options.HeldLimit is -1s: it must not be negative (0 means 1m0s)":               func(o *consumer.Options) { o.HeldLimit = negative },
		"consumer.Options.CommitInterval is -1s: it must not be negative (0 means 1s)":            func(o *consumer.Options) { o.CommitInterval = negative },
		"consumer.Options.DrainTimeout is -1s: it must not be negative (0 means 30s)":             func(o *consumer.Options) { o.DrainTimeout = negative },
		"consumer.Options.StuckAfter is -1s: it must not be negative (0 means 1m0s)":              func(o *consumer.Options) { o.StuckAfter = negative },
		"consumer.Options.Order is 9: use OrderByKey, OrderByPartition or OrderNone":              func(o *consumer.Options) { o.Order = 9 },
		"consumer.Options.MissingID is 9: use MissingOffset, MissingPayloadHash or MissingReject": func(o *consumer.Options) { o.MissingID = 9 },
		"consumer.Options.OutsideWindow is 9: use OutsideWindowPark or OutsideWindowRun":          func(o *consumer.Options) { o.OutsideWindow = 9 },
		"schedule: delay 2 (1s) is shorter than the one before (2s): put them in order":           func(o *consumer.Options) { o.Schedule = exact(2*time.Second, time.Second) },
		"schedule: jitter 0.9: use at most 0.5, negative for none":                                func(o *consumer.Options) { o.Schedule = requeue.Schedule{Jitter: 0.9} },
		"give each its own name with Names.Retry and Names.DeadLetter":                            func(o *consumer.Options) { o.Topics.DeadLetter = func(string, string) string { return topic } },
	} {
		b := newBench(t, 1)
		o := b.options()
		change(o)
		_, err := consumer.New(b.source(nil), b.fence, idempotent(b.ledger.bookEffect), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	b := newBench(t, 1)
	e := idempotent(b.ledger.bookEffect)
	for want, try := range map[string]func() (*consumer.Consumer, error){
		"consumer.New: source is nil":                                         func() (*consumer.Consumer, error) { return consumer.New(nil, b.fence, e, b.options()) },
		"consumer.New: fence is nil, and effects of kind idempotent need one": func() (*consumer.Consumer, error) { return consumer.New(b.source(nil), nil, e, b.options()) },
		"no effect kind: use effect.": func() (*consumer.Consumer, error) {
			return consumer.New(b.source(nil), b.fence, effect.Effect{}, b.options())
		},
		"Remembers is not given": func() (*consumer.Consumer, error) {
			return consumer.New(b.source(nil), b.fence, effect.Idempotent(b.ledger.bookEffect, effect.IdempotentOptions{}), b.options())
		},
		"the source has no consumer group": func() (*consumer.Consumer, error) {
			return consumer.New(b.broker.Source("", []string{topic}, nil), b.fence, e, b.options())
		},
	} {
		c, err := try()
		if c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	b := newBench(t, 1)
	_, err := consumer.New(b.source(nil), nil, effect.Effect{}, &consumer.Options{Concurrency: -1, Lease: -1})
	for _, part := range []string{"Producer is nil", "Concurrency is -1", "Lease is -1ns", "no effect kind"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v; want %q in it", err, part)
		}
	}
}

func TestAtMostOnceHasALongerLease(t *testing.T) {
	for kind, want := range map[string]time.Duration{"idempotent": 10 * time.Second, "at-most-once": time.Minute} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.produce("a", "", "order a")
			e := idempotent(waits(b, 2*time.Second))
			if kind == "at-most-once" {
				e = atMostOnce(waits(b, 2*time.Second))
			}
			start := time.Now()
			_, stop := b.start(e, b.options())
			b.wait(time.Second)
			if end := time.UnixMicro(b.record("a").LeaseEnd); end.Sub(start).Round(time.Second) != want {
				t.Errorf("%s: a lease of %v, want %v", kind, end.Sub(start), want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// run starts a consumer and returns what Run says within the time.
func (b *bench) run(o *consumer.Options, d time.Duration) error {
	b.t.Helper()
	c, err := consumer.New(b.source(nil), b.fence, idempotent(b.ledger.bookEffect), o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	return c.Run(ctx)
}

func TestRetentionIsCheckedAtTheStart(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, c := range []struct {
		name      string
		topic     time.Duration
		fence     *fence.Options
		endless   bool
		wantParts []string
	}{
		{"longer than the topic", week, nil, false, nil},
		{"just long enough", week, &fence.Options{Retention: week + 72*time.Second}, false, nil},
		{"too short", week, &fence.Options{Retention: week + 71*time.Second}, false, []string{
			"the fence forgets a sealed key after 168h1m11s, but the source can deliver a record again for 168h0m0s and retries take up to 1m12s: set fence.Options.Retention to at least 168h1m12s",
		}},
		{"too short, accepted", week, &fence.Options{Retention: time.Hour}, true, nil},
		{"endless topic", -1, nil, false, []string{"keeps its records without end", "limit retention.ms", "fence.Options.Endless", "consumer.Options.EndlessTopics"}},
		{"endless topic, accepted", -1, nil, true, nil},
		{"endless topic and fence", -1, &fence.Options{Endless: true}, false, nil},
		{"not known", 0, nil, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				b.broker = memsource.NewBroker(nil)
				if err := b.broker.CreateTopic(topic, &memsource.TopicOptions{Retention: c.topic}); err != nil {
					t.Fatal(err)
				}
				o := fence.Options{}
				if c.fence != nil {
					o = *c.fence
				}
				o.Logger = slog.New(slog.DiscardHandler)
				f, err := fence.New(memfence.NewStore(nil), &o)
				if err != nil {
					t.Fatal(err)
				}
				b.fence = f
				opts := b.options()
				opts.EndlessTopics = c.endless
				err = b.run(opts, 3*time.Second)
				if c.wantParts == nil && err != nil {
					t.Errorf("Run: %v", err)
				}
				if c.wantParts != nil {
					contains(t, "Run", err, c.wantParts...)
				}
			})
		})
	}
}

func TestAMissingSourceTopicEndsRun(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		c, err := consumer.New(b.broker.Source(group, []string{"nothing"}, nil), b.fence, idempotent(b.ledger.bookEffect), b.options())
		if err != nil {
			t.Fatal(err)
		}
		contains(t, "Run", c.Run(t.Context()), "topic nothing, which does not exist")
	})
}

func TestMissingRetryTopicsEndRunWhereTheyAreNotMade(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		o := b.options()
		o.Producer = b.broker.Producer(&memsource.ProducerOptions{RefuseCreate: true})
		contains(t, "Run", b.run(o, time.Minute), "retry and dead-letter topics", "orders.billing.retry.1s does not exist", "orders.billing.dlq does not exist")
	})
}

func TestErrorsOfTheStartAndOfTheEndComeBackTogether(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		o := b.options()
		o.Producer = refusingProducer{Producer: o.Producer}
		err := b.run(o, time.Minute)
		if !errors.Is(err, errRefused) {
			t.Errorf("Run: %v", err)
		}
		contains(t, "Run", err, "retry and dead-letter topics", "close the producer")
	})
}

var errRefused = errors.New("cluster authorization failed")

type refusingProducer struct{ driver.Producer }

func (refusingProducer) Ensure(context.Context, []driver.TopicSpec) error { return errRefused }
func (refusingProducer) Close(context.Context) error                      { return fmt.Errorf("still busy") }
