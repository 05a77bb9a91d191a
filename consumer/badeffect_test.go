package consumer_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

func goexit() { runtime.Goexit() }

// An effect that panics or ends its goroutine at one record leaves that one
// unknown, and nothing of its neighbours is lost with the worker.
func TestPanicAndGoexitLeaveOneRecordUnknown(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("no") }, "goexit": goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				for i := range 1000 {
					b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
				}
				died := 0
				e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
					if string(in.Payload) == "order 907" && in.Attempt == 1 {
						died++
						end()
					}
					return b.ledger.bookEffect(ctx, in)
				}, forever())
				opts := b.options()
				opts.Concurrency = 1
				b.runFor(10*time.Second, e, opts)
				if died != 1 || b.ledger.total() != 1000 || b.committed(0) != 1000 {
					t.Errorf("died %d times, %d booked, committed %d; decisions %v", died, b.ledger.total(), b.committed(0), b.log)
				}
				if b.log.count("unknown") != 1 || b.log.count("requeued") != 1 {
					t.Errorf("decisions %v", b.log)
				}
			})
		})
	}
}

func TestGoexitAtEveryRecordEndsAsDeadLetters(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		e := effect.AtMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { goexit(); return effect.Receipt{}, nil }, nil)
		opts := b.options()
		opts.Concurrency = 3
		b.runFor(10*time.Second, e, opts)
		if len(b.deadLetters()) != 20 || b.committed(0) != 20 {
			t.Errorf("%d dead letters, committed %d, decisions %v", len(b.deadLetters()), b.committed(0), b.log)
		}
	})
}

// What has run and what waits behind a slow effect in the same worker does not
// wait for it.
func TestASlowEffectHoldsUpOnlyItself(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 1000 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order 907" {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		opts := b.options()
		opts.Concurrency = 2
		_, stop := b.start(e, opts)
		b.wait(3 * time.Second)
		if n := b.log.count("done"); n != 999 {
			t.Errorf("%d records were sealed beside the slow one, want 999", n)
		}
		b.wait(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if b.committed(0) != 1000 {
			t.Errorf("committed %d", b.committed(0))
		}
	})
}

// stuck is an effect that does not look at its context for a given time.
func stuck(b *bench, value string, d time.Duration) effect.Func {
	var again atomic.Bool
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if string(in.Payload) == value && !again.Swap(true) {
			time.Sleep(d)
		}
		return b.ledger.bookEffect(ctx, in)
	}
}

func TestAnEffectThatDoesNotReturnIsGivenUp(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 50 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		e := effect.Idempotent(stuck(b, "order 20", time.Hour), effect.IdempotentOptions{Remembers: effect.Forever, MaxRunTime: 20 * time.Second})
		opts := b.options()
		opts.Concurrency = 1
		_, stop := b.start(e, opts)
		b.wait(15 * time.Second)
		if b.log.count("abandoned") != 0 {
			t.Error("given up before its maximum run time")
		}
		b.wait(45 * time.Second) // 20 s, a lease of 10 s, and the lease that was left
		if b.log.count("abandoned") != 1 || b.ledger.total() != 50 || b.committed(0) != 50 {
			t.Errorf("decisions %v, %d booked, committed %d", b.log, b.ledger.total(), b.committed(0))
		}
		if r := b.record("id-20"); r.State != fencedriver.Done || r.Attempt != 2 {
			t.Errorf("record %s, attempt %d", r.State, r.Attempt)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) // the effect must end with the bubble
	})
}

func TestALateResultIsSealedOrReported(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		o := &effect.AtMostOnceOptions{MaxRunTime: 5 * time.Second}
		opts := b.options()
		opts.Lease = 10 * time.Second
		_, stop := b.start(effect.AtMostOnce(stuck(b, "order a", 30*time.Second), o), opts)
		b.wait(29 * time.Second)
		if r := b.record("a"); r.State != fencedriver.Dead || !r.InDoubt {
			t.Errorf("record %s, in doubt %v, before the effect returned", r.State, r.InDoubt)
		}
		b.wait(5 * time.Second)
		if r := b.record("a"); r.State != fencedriver.Done || b.ledger.count("order a") != 1 {
			t.Errorf("record %s after the effect had returned as applied; decisions %v", r.State, b.log)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The record was run again meanwhile: what returns late is refused and reported,
// with what it says about the sink.
func TestALateResultOverAnotherSealIsReported(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		e := effect.Idempotent(stuck(b, "order a", 10*time.Minute), effect.IdempotentOptions{Remembers: effect.Forever, MaxRunTime: 5 * time.Second})
		_, stop := b.start(e, b.options())
		b.wait(time.Minute)
		if b.record("a").State != fencedriver.Done || b.log.count("abandoned") != 1 || b.committed(0) != 1 {
			t.Fatalf("record %s, decisions %v", b.record("a").State, b.log)
		}
		b.wait(10 * time.Minute)
		if b.log.count("late_seal") != 1 || b.ledger.count("order a") != 2 {
			t.Errorf("decisions %v, booked %d times", b.log, b.ledger.count("order a"))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEffectWithoutAFenceThatDoesNotReturnIsRetried(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		b.produce("b", "k", "order b")
		e := effect.AtLeastOnce(stuck(b, "order a", time.Hour), &effect.AtLeastOnceOptions{MaxRunTime: 5 * time.Second})
		_, stop := b.start(e, b.options())
		b.wait(time.Minute)
		if b.ledger.total() != 2 || b.log.count("abandoned") != 1 || b.log.count("requeued") != 1 || b.committed(0) != 2 {
			t.Errorf("%d booked, decisions %v, committed %d", b.ledger.total(), b.log, b.committed(0))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
	})
}

func TestTheContextEndsAfterMaxRunTime(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		var ran []time.Duration
		e := effect.AtLeastOnce(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			start := time.Now()
			if in.Attempt == 1 {
				<-ctx.Done()
				ran = append(ran, time.Since(start))
				return effect.Receipt{}, ctx.Err()
			}
			return b.ledger.bookEffect(ctx, in)
		}, &effect.AtLeastOnceOptions{MaxRunTime: 7 * time.Second})
		b.runFor(30*time.Second, e, b.options())
		if len(ran) != 1 || ran[0] < 7*time.Second || ran[0] > 8*time.Second || b.ledger.count("order a") != 1 {
			t.Errorf("the context ended after %v, %d booked", ran, b.ledger.count("order a"))
		}
	})
}

func TestAnUnknownReasonIsNotAPayload(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "secret payload")
		e := effect.AtMostOnce(func(_ context.Context, in effect.Input) (effect.Receipt, error) { panic(in.Payload) }, nil)
		b.runFor(5*time.Second, e, b.options())
		dead := b.deadLetters()
		if len(dead) != 1 {
			t.Fatal(len(dead))
		}
		if got := header(dead[0], "oncefence-error"); got != "effect panicked: a value of type []uint8" {
			t.Errorf("error header %q", got)
		}
	})
}
