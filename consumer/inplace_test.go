package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

func (b *bench) inPlace() *consumer.Options {
	o := b.options()
	o.InPlace, o.Schedule = true, exact(time.Second, 5*time.Second, 30*time.Second)
	return o
}

func TestRetriesInPlaceKeepTheOrderOfAKey(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 6 {
			b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%2), fmt.Sprint("order ", i))
		}
		var attempts []string
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			attempts = append(attempts, fmt.Sprintf("%s/%d/%d", in.Payload, in.Attempt, in.Step))
			if string(in.Payload) == "order 0" && in.Attempt < 3 {
				return effect.Receipt{}, effect.Temporary(errPlain)
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		opts := b.inPlace()
		opts.Concurrency = 1
		_, stop := b.start(e, opts)
		b.wait(4 * time.Second)
		if r := b.record("id-0"); r.State != fencedriver.Pending || r.Verdict != fencedriver.VerdictRetry || b.committed(0) != 0 {
			t.Errorf("between attempts the record is %s with verdict %d, committed %d", r.State, r.Verdict, b.committed(0))
		}
		b.wait(10 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := "[order 0/1/0 order 1/1/0 order 3/1/0 order 5/1/0 order 0/2/1 order 0/3/2 order 2/1/0 order 4/1/0]"
		if fmt.Sprint(attempts) != want {
			t.Errorf("ran %v, want %s", attempts, want)
		}
		if b.committed(0) != 6 || len(b.broker.Topics()) != 2 {
			t.Errorf("committed %d, topics %v", b.committed(0), b.broker.Topics())
		}
	})
}

func TestRetriesInPlaceEndAsDeadLetter(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		b.produce("b", "k", "order b")
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order a" {
				return effect.Receipt{}, errPlain
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		b.runFor(time.Minute, e, b.inPlace())
		r := b.record("a")
		if r.State != fencedriver.Dead || !r.InDoubt || r.Attempt != 4 || b.ledger.count("order b") != 1 || b.committed(0) != 2 {
			t.Errorf("record %s, in doubt %v, attempt %d; order b booked %d times, committed %d", r.State, r.InDoubt, r.Attempt, b.ledger.count("order b"), b.committed(0))
		}
	})
}

func TestTheNextOwnerWaitsOutARetryInPlace(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), effect.Temporary(errPlain), nil}}
		e := effect.AtMostOnce(s.run, nil)
		b.runFor(3*time.Second, e, b.inPlace()) // stops in the wait of 5 s
		if s.count() != 2 {
			t.Fatalf("%d runs", s.count())
		}
		b.runFor(2*time.Minute, e, b.inPlace())
		if s.count() != 3 || s.runs[2].Attempt != 3 || s.at[2].Sub(s.at[1]) < 5*time.Second || b.record("a").State != fencedriver.Done {
			t.Errorf("%d runs at %v, record %s, decisions %v", s.count(), s.at, b.record("a").State, b.log)
		}
		if b.log.count("in_doubt") != 0 {
			t.Errorf("decisions %v: a verdict leaves no doubt", b.log)
		}
	})
}

// An attempt that began in place and was not run before the stop is no doubt.
func TestAnAttemptThatBeganAndDidNotRunIsNoDoubt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		b.produce("b", "j", "order b")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
		slow := waits(b, 10*time.Second)
		e := effect.AtMostOnce(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order a" {
				return s.run(ctx, in)
			}
			return slow(ctx, in)
		}, nil)
		opts := b.inPlace()
		opts.Concurrency = 1
		_, stop := b.start(e, opts)
		b.wait(5 * time.Second) // a waits for the only worker, its second attempt has begun
		if r := b.record("a"); r.Attempt != 2 || r.Verdict != fencedriver.NoVerdict || s.count() != 1 {
			t.Fatalf("attempt %d, verdict %d, %d runs", r.Attempt, r.Verdict, s.count())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.runFor(2*time.Minute, e, b.inPlace())
		if s.count() != 2 || s.runs[1].Step != 1 || b.record("a").State != fencedriver.Done || b.log.count("in_doubt") != 0 {
			t.Errorf("%d runs, record %s, decisions %v", s.count(), b.record("a").State, b.log)
		}
	})
}

func TestAHeldKeyHoldsUpItsLaneInPlace(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		b.produce("b", "k", "order b")
		b.produce("c", "j", "order c")
		s := b.space()
		c := b.claim(s, "a", "order a", fencedriver.KindIdempotent, 10*time.Second)
		opts := b.inPlace()
		opts.HeldLimit = 2 * time.Second
		_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), opts)
		b.wait(20 * time.Second)
		if b.ledger.total() != 1 || b.ledger.count("order c") != 1 || b.log.count("moved") != 0 {
			t.Errorf("booked %v, decisions %v", b.ledger.order, b.log)
		}
		c.Hold.Drop()
		b.wait(15 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(b.ledger.order) != "[order c order a order b]" {
			t.Errorf("booked %v", b.ledger.order)
		}
	})
}
