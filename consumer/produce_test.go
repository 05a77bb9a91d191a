package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// A produce whose outcome is not known is repeated; the second copy is answered
// by the fence.
func TestAnUnknownProduceIsRepeated(t *testing.T) {
	for _, kind := range []string{"idempotent", "at-most-once"} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			var mu sync.Mutex
			seen := map[string]int{}
			opts := b.options()
			opts.Producer = b.broker.Producer(&memsource.ProducerOptions{OnProduce: func(_ context.Context, r driver.Record) memsource.Fault {
				mu.Lock()
				defer mu.Unlock()
				if seen[r.Topic+string(r.Value)]++; seen[r.Topic+string(r.Value)] <= 2 {
					return memsource.Fault{Err: context.DeadlineExceeded, Applied: true}
				}
				return memsource.Fault{}
			}})
			b.produce("a", "", "order a")
			b.produce("b", "", "order b")
			e := map[string]func(effect.Func) effect.Effect{"idempotent": idempotent, "at-most-once": atMostOnce}[kind](
				func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
					switch {
					case string(in.Payload) == "order b":
						return effect.Receipt{}, effect.Permanent(errPlain)
					case in.Attempt == 1:
						return effect.Receipt{}, effect.Temporary(errPlain)
					}
					return b.ledger.bookEffect(ctx, in)
				})
			b.runFor(20*time.Second, e, opts)
			if n := len(b.broker.Records(retry1s)); n != 3 {
				t.Errorf("%d copies, want 3", n)
			}
			if b.ledger.count("order a") != 1 || b.log.count("duplicate") != 2 || b.retryCommitted(retry1s) != 3 || b.committed(0) != 2 {
				t.Errorf("booked %d times, decisions %v, committed %d", b.ledger.count("order a"), b.log, b.committed(0))
			}
			if len(b.deadLetters()) != 3 || b.record("b").State != fencedriver.Dead {
				t.Errorf("%d dead letters, record %s", len(b.deadLetters()), b.record("b").State)
			}
		})
	}
}

func TestNothingIsCommittedPastAProduceThatFails(t *testing.T) {
	for _, what := range []string{"retry", "dlq"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, b *bench) {
				for p := range int32(2) {
					for i := range 20 {
						if _, err := b.broker.ProduceTo(driver.TopicPartition{Topic: topic, Partition: p}, driver.Record{
							Value: fmt.Appendf(nil, "order %d/%d", p, i), Headers: []driver.Header{{Key: "idempotency-key", Value: fmt.Append(nil, p, i)}},
						}); err != nil {
							t.Fatal(err)
						}
					}
				}
				var down atomic.Bool
				down.Store(true)
				opts := b.options()
				opts.Producer = b.failingProducer(func(r driver.Record) bool { return down.Load() && strings.Contains(r.Topic, what) })
				c, stop := b.start(idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
					if string(in.Payload) == "order 0/5" {
						if what == "dlq" {
							return effect.Receipt{}, effect.Permanent(errPlain)
						}
						if in.Attempt == 1 {
							return effect.Receipt{}, effect.Temporary(errPlain)
						}
					}
					return b.ledger.bookEffect(ctx, in)
				}), opts)
				b.wait(10 * time.Minute)
				if b.committed(0) != 5 || b.committed(1) != 20 || b.ledger.total() != 39 {
					t.Errorf("committed %d and %d, %d booked", b.committed(0), b.committed(1), b.ledger.total())
				}
				if err := c.Healthy(); err == nil || !strings.Contains(err.Error(), "stands at offset 5 since") || !strings.Contains(err.Error(), "not enough replicas") {
					t.Errorf("Healthy: %v", err)
				}
				down.Store(false)
				b.wait(10 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if b.committed(0) != 20 || b.ledger.total()+len(b.deadLetters()) != 40 {
					t.Errorf("committed %d, %d booked, %d dead letters", b.committed(0), b.ledger.total(), len(b.deadLetters()))
				}
			})
		})
	}
}

// A producer that does not answer is bounded, and so is the stop.
func TestAProducerThatHangsDoesNotHoldUpTheStop(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		b.produce("b", "", "order b")
		opts := b.options()
		opts.DrainTimeout = 5 * time.Second
		opts.Producer = b.broker.Producer(&memsource.ProducerOptions{OnProduce: func(ctx context.Context, _ driver.Record) memsource.Fault {
			<-ctx.Done()
			return memsource.Fault{Err: ctx.Err()}
		}})
		e := idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order a" {
				return effect.Receipt{}, effect.Temporary(errPlain)
			}
			return b.ledger.bookEffect(ctx, in)
		})
		_, stop := b.start(e, opts)
		b.wait(2 * time.Second)
		begin := time.Now()
		err := stop()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if b.committed(0) != 0 || b.record("a").Verdict != fencedriver.VerdictRetry {
			t.Errorf("Run: %v, committed %d, verdict %d", err, b.committed(0), b.record("a").Verdict)
		}
		// The next process finds the retry due and goes on.
		b.runFor(30*time.Second, idempotent(b.ledger.bookEffect), b.options())
		if b.ledger.count("order a") != 1 || b.ledger.count("order b") != 1 || b.committed(0) != 2 || b.log.count("in_doubt") != 0 {
			t.Errorf("booked %v, committed %d, decisions %v", b.ledger.order, b.committed(0), b.log)
		}
	})
}

func TestAProducerThatAnswersTooFewIsNotBelieved(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		opts := b.options()
		p := &shortProducer{Producer: b.broker.Producer(nil)}
		opts.Producer = p
		s := &script{b: b, answers: []error{effect.Permanent(errors.New("no"))}}
		b.runFor(10*time.Second, idempotent(s.run), opts)
		if p.calls < 3 || len(b.deadLetters()) != 1 || b.committed(0) != 1 {
			t.Errorf("%d calls, %d dead letters, committed %d", p.calls, len(b.deadLetters()), b.committed(0))
		}
	})
}

// shortProducer answers nothing for its first two calls.
type shortProducer struct {
	driver.Producer
	calls int
}

func (p *shortProducer) Produce(ctx context.Context, records []driver.Record) []error {
	if p.calls++; p.calls <= 2 {
		return nil
	}
	return p.Producer.Produce(ctx, records)
}
