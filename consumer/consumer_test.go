package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
)

func forever() effect.IdempotentOptions { return effect.IdempotentOptions{Remembers: effect.Forever} }

func TestAppliesEachKeyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 4)
		for i := range 1000 {
			b.produce(fmt.Sprint("id-", i), fmt.Sprint("customer-", i%17), fmt.Sprint("order ", i))
			if i%5 == 0 {
				b.produce(fmt.Sprint("id-", i), fmt.Sprint("customer-", i%17), fmt.Sprint("order ", i))
			}
		}
		b.runFor(5*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		for i := range 1000 {
			if n := b.ledger.count(fmt.Sprint("order ", i)); n != 1 {
				t.Fatalf("order %d was booked %d times", i, n)
			}
		}
		if done, dup := b.log.count("done"), b.log.count("duplicate"); done != 1000 || dup != 200 {
			t.Errorf("done %d, duplicate %d, want 1000 and 200; all: %v", done, dup, b.log)
		}
		var sum int64
		for p := range int32(4) {
			sum += max(b.committed(p), 0)
		}
		if sum != 1200 {
			t.Errorf("committed %d records, want 1200", sum)
		}
	})
}

func TestTemporaryIsRequeuedThenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.produce("a", "k", "order a")
		start := time.Now()
		var at []time.Duration
		var attempts []int
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			at = append(at, time.Since(start))
			attempts = append(attempts, in.Attempt)
			if len(at) < 3 {
				return effect.Receipt{}, effect.Temporary(errors.New("busy"))
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		b.runFor(time.Minute, e, b.options())
		if len(at) != 3 || at[1] < 900*time.Millisecond || at[2]-at[1] < 4500*time.Millisecond || at[2] > 9*time.Second {
			t.Errorf("attempts at %v", at)
		}
		if fmt.Sprint(attempts) != "[1 2 3]" {
			t.Errorf("attempts %v", attempts)
		}
		if b.ledger.count("order a") != 1 || b.log.count("requeued") != 2 || b.committed(0) != 1 {
			t.Errorf("booked %d, decisions %v, committed %d", b.ledger.count("order a"), b.log, b.committed(0))
		}
	})
}

func TestPermanentBecomesDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.produce("a", "k", "order a")
		b.produce("b", "k", "order b")
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order a" {
				return effect.Receipt{}, effect.Permanent(errors.New("no such customer"))
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		b.runFor(5*time.Second, e, b.options())
		dead := b.deadLetters()
		if len(dead) != 1 || string(dead[0].Value) != "order a" || string(dead[0].Key) != "k" {
			t.Fatalf("dead letters: %v", dead)
		}
		if header(dead[0], "oncefence-attempt") != "1" || header(dead[0], "oncefence-error") == "" {
			t.Errorf("headers: %v", dead[0].Headers)
		}
		if b.committed(0) != 2 || b.ledger.count("order b") != 1 {
			t.Errorf("committed %d, order b booked %d", b.committed(0), b.ledger.count("order b"))
		}
	})
}

func TestRetriesSpentAfter36Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.produce("a", "k", "order a")
		start := time.Now()
		var last time.Duration
		n := 0
		e := effect.Idempotent(func(context.Context, effect.Input) (effect.Receipt, error) {
			n++
			last = time.Since(start)
			return effect.Receipt{}, effect.Temporary(errors.New("busy"))
		}, forever())
		opts := b.options()
		opts.Schedule.Jitter = -1
		b.runFor(2*time.Minute, e, opts)
		if n != 4 || last < 36*time.Second || last > 38*time.Second {
			t.Errorf("%d attempts, the last after %v; want 4 and 36 s", n, last)
		}
		if dead := b.deadLetters(); len(dead) != 1 || header(dead[0], "oncefence-attempt") != "4" {
			t.Errorf("dead letters: %v", dead)
		}
	})
}
