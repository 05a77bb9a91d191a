package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// startWith runs a consumer over a source of its own.
func (b *bench) startWith(source driver.Source, e effect.Effect, opts *consumer.Options) (*consumer.Consumer, func() error) {
	b.t.Helper()
	c, err := consumer.New(source, b.fence, e, opts)
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

func (b *bench) source(o *memsource.SourceOptions) *memsource.Source {
	return b.broker.Source(group, []string{topic}, o)
}

func TestRevokeCommitsThePrefixAndReleasesTheRest(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 40 {
			b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%4), fmt.Sprint("order ", i))
		}
		// Four lanes: the first ten are quick, the next four take 2 s, the rest
		// waits.
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if in.Origin.Offset >= 10 {
				return waits(b, 2*time.Second)(ctx, in)
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		opts := b.options()
		opts.Concurrency, opts.CommitInterval = 4, time.Hour
		_, stopA := b.start(e, opts)
		b.wait(time.Second)
		second := &decisions{}
		opts2 := *b.options()
		opts2.Observer = second
		_, stopB := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), &opts2)
		b.broker.Rebalance(group)
		b.wait(1500 * time.Millisecond)
		if got := b.committed(0); got != 14 {
			t.Errorf("committed %d after the revoke, want the prefix of 14", got)
		}
		b.wait(5 * time.Second)
		if err := stopA(); err != nil {
			t.Error(err)
		}
		b.wait(time.Second)
		if err := stopB(); err != nil {
			t.Error(err)
		}
		for i := range 40 {
			if n := b.ledger.count(fmt.Sprint("order ", i)); n != 1 {
				t.Errorf("order %d was booked %d times", i, n)
			}
		}
		if b.committed(0) != 40 || b.log.count("in_doubt")+second.count("in_doubt") != 0 {
			t.Errorf("committed %d, decisions %v and %v: what never started must be new to the next owner", b.committed(0), b.log, second)
		}
	})
}

func TestRevokeDoesNotWaitLongerThanHalfTheRebalanceTimeout(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		b.produce("b", "", "order b")
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order b" {
				return waits(b, 20*time.Second)(ctx, in)
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		source := b.source(&memsource.SourceOptions{RebalanceTimeout: 6 * time.Second})
		_, stop := b.startWith(source, e, b.options())
		b.wait(time.Second)
		b.broker.Rebalance(group)
		tp := driver.TopicPartition{Topic: topic}
		b.wait(2900 * time.Millisecond)
		if b.broker.Owner(group, tp) != source {
			t.Fatal("let go before half of the rebalance timeout, with an effect running")
		}
		b.wait(time.Second)
		// It was assigned again: the record waits in this process for the effect
		// of before.
		if b.committed(0) != 1 || b.ledger.total() != 1 {
			t.Errorf("committed %d, %d booked", b.committed(0), b.ledger.total())
		}
		b.wait(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.count("order b") != 1 || b.committed(0) != 2 || b.log.count("duplicate") != 1 {
			t.Errorf("order b booked %d times, committed %d, decisions %v: it may seal after the revoke", b.ledger.count("order b"), b.committed(0), b.log)
		}
	})
}

func TestNothingStartsInALostPartition(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 60 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		var lost time.Time
		after := 0
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if !lost.IsZero() {
				after++
			}
			return waits(b, 3*time.Second)(ctx, in)
		}, forever())
		commits := 0
		source := b.source(&memsource.SourceOptions{OnCommit: func(context.Context, driver.Offset) memsource.Fault {
			if !lost.IsZero() {
				commits++
			}
			return memsource.Fault{}
		}})
		opts := b.options()
		opts.Concurrency, opts.CommitInterval = 3, time.Hour
		_, stop := b.startWith(source, e, opts)
		b.wait(time.Second)
		// Another member takes the partition while this one is thrown out.
		_, stopB := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(100 * time.Millisecond)
		lost = time.Now()
		source.Lose()
		b.wait(20 * time.Second)
		if after != 0 || commits != 0 {
			t.Errorf("%d effects started and %d commits came after the loss", after, commits)
		}
		if b.ledger.total() != 60 || b.committed(0) != 60 {
			t.Errorf("%d booked, committed %d", b.ledger.total(), b.committed(0))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := stopB(); err != nil {
			t.Error(err)
		}
	})
}

func TestStopWaitsForEffectsOfLostPartitions(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		source := b.source(nil)
		_, stop := b.startWith(source, effect.AtMostOnce(waits(b, 5*time.Second), nil), b.options())
		b.wait(time.Second)
		other := b.source(nil) // takes the partition, delivers to nobody
		if err := other.Start(t.Context(), nil, nobody{}); err != nil {
			t.Fatal(err)
		}
		source.Lose()
		b.wait(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := b.record("a"); r.State != fencedriver.Done || b.committed(0) != 0 {
			t.Errorf("record %s, committed %d: it may seal, not commit", r.State, b.committed(0))
		}
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A verdict that is said after the partition went away is left to the next
// owner, at once and without doubt.
func TestAVerdictAfterALossIsLeftToTheNextOwner(t *testing.T) {
	for name, verdict := range map[string]error{"temporary": effect.Temporary(errPlain), "permanent": effect.Permanent(errPlain)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				b.produce("a", "", "order a")
				source := b.source(nil)
				var said time.Time
				_, stop := b.startWith(source, atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) {
					time.Sleep(5 * time.Second)
					said = time.Now()
					return effect.Receipt{}, verdict
				}), b.options())
				b.wait(time.Second)
				s := &script{b: b, answers: []error{nil}}
				second := &decisions{}
				opts := b.options()
				opts.Observer = second
				_, stopB := b.start(atMostOnce(s.run), opts)
				b.wait(100 * time.Millisecond)
				source.Lose()
				b.wait(20 * time.Second)
				if err := errors.Join(stop(), stopB()); err != nil {
					t.Error(err)
				}
				if b.committed(0) != 1 || second.count("in_doubt")+b.log.count("in_doubt") != 0 {
					t.Errorf("committed %d, decisions %v and %v", b.committed(0), b.log, second)
				}
				if name == "permanent" {
					if len(b.deadLetters()) != 1 || s.count() != 0 {
						t.Errorf("%d dead letters, %d runs", len(b.deadLetters()), s.count())
					}
					return
				}
				if s.count() != 1 || s.at[0].Sub(said) > 4*time.Second {
					t.Errorf("%d runs at %v, the verdict was said at %v", s.count(), s.at, said)
				}
			})
		})
	}
}

// nobody is a handler that does nothing.
type nobody struct{}

func (nobody) Assigned([]driver.Assignment)                     {}
func (nobody) Revoked(context.Context, []driver.TopicPartition) {}
func (nobody) Lost([]driver.TopicPartition)                     {}

func TestRebalanceStorm(t *testing.T) {
	for _, members := range []int{2, 3} {
		bubble(t, 5, func(t *testing.T, b *bench) {
			var stops []func() error
			var sources []*memsource.Source
			for range members {
				source := b.source(nil)
				opts := b.options()
				opts.Concurrency, opts.CommitInterval = 3, 50*time.Millisecond
				_, stop := b.startWith(source, effect.Idempotent(waits(b, 7*time.Millisecond), forever()), opts)
				sources, stops = append(sources, source), append(stops, stop)
			}
			for i := range 600 {
				b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%50), fmt.Sprint("order ", i))
				switch {
				case i%20 == 0:
					b.broker.Rebalance(group)
				case i%33 == 0:
					sources[i%members].Lose()
				case i%47 == 0:
					sources[i%members].Evict()
				}
				time.Sleep(5 * time.Millisecond)
			}
			b.wait(30 * time.Second)
			for _, stop := range stops {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
			for i := range 600 {
				if n := b.ledger.count(fmt.Sprint("order ", i)); n != 1 {
					t.Errorf("order %d was booked %d times", i, n)
				}
			}
			var sum int64
			for p := range int32(5) {
				sum += max(b.committed(p), 0)
			}
			if sum != 600 {
				t.Errorf("committed %d, want 600; decisions %v", sum, b.log)
			}
		})
	}
}
