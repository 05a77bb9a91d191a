package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

func TestAHeldKeyIsAskedForWithBackOff(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		s := b.space()
		c := b.claim(s, "a", "order a", fencedriver.KindIdempotent, 10*time.Second)
		b.produce("a", "k", "order a")
		for i := range 20 {
			b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i), fmt.Sprint("order ", i))
		}
		hook := b.hook()
		var asked []time.Time
		hook.onClaim = func(_ context.Context, claims []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed {
			for _, x := range claims {
				if x.Key == idKey("a").Digest() {
					asked = append(asked, time.Now())
				}
			}
			return pass()
		}
		_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(10 * time.Second)
		if b.ledger.total() != 20 || b.committed(0) != 0 || b.log.gauge().Held != 1 {
			t.Errorf("%d booked beside the held key, committed %d, held %d", b.ledger.total(), b.committed(0), b.log.gauge().Held)
		}
		for i, want := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
			if got := asked[i+1].Sub(asked[i]); got != want*time.Millisecond {
				t.Errorf("asking %d came after %v, want %d ms", i+2, got, want)
			}
		}
		if b.log.count("held") != 1 {
			t.Errorf("decisions %v: held is decided once", b.log)
		}
		c.Hold.Drop()
		b.wait(11 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.count("order a") != 1 || b.committed(0) != 21 {
			t.Errorf("booked %d times, committed %d", b.ledger.count("order a"), b.committed(0))
		}
	})
}

func TestAKeyHeldTooLongMovesWithTheSameAttempt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		s := b.space()
		c := b.claim(s, "a", "order a", fencedriver.KindIdempotent, 10*time.Second)
		b.produce("a", "k", "order a")
		opts := b.options()
		opts.HeldLimit = 5 * time.Second
		_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), opts)
		b.wait(8 * time.Second)
		moved := b.broker.Records(topic + "." + group + ".retry.1s")
		if len(moved) != 1 || header(moved[0], "oncefence-attempt") != "1" || header(moved[0], "oncefence-step") != "0" || header(moved[0], "oncefence-reason") != "held" {
			t.Fatalf("moved %v", moved)
		}
		if b.committed(0) != 1 || b.log.count("moved") != 1 {
			t.Errorf("committed %d, decisions %v: the copy is the evidence", b.committed(0), b.log)
		}
		b.wait(20 * time.Second) // it moves again and again while it is held
		if n := b.log.count("moved"); n < 3 {
			t.Errorf("moved %d times", n)
		}
		c.Hold.Drop()
		b.wait(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.count("order a") != 1 || b.record("a").State != fencedriver.Done {
			t.Errorf("booked %d times, record %s", b.ledger.count("order a"), b.record("a").State)
		}
	})
}

func TestAHeldKeyIsAskedForAtTheEndOfTheLease(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.abandon("a", "order a", fencedriver.KindIdempotent, 2300*time.Millisecond)
		b.produce("a", "k", "order a")
		start := time.Now()
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, effect.Idempotent(s.run, forever()), b.options())
		if s.count() != 1 || s.at[0].Sub(start) > 2400*time.Millisecond {
			t.Errorf("%d runs, %v after the lease began", s.count(), s.at[0].Sub(start))
		}
	})
}

// A copy that was moved while its topic refused it goes on as before.
func TestAHeldRecordThatIsTooLargeToMoveWaitsOn(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		s := b.space()
		c := b.claim(s, "a", string(big), fencedriver.KindIdempotent, 10*time.Second)
		b.produce("a", "k", string(big))
		opts := b.options()
		opts.HeldLimit = 3 * time.Second
		opts.Producer = b.tightProducer(1 << 16)
		_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), opts)
		b.wait(20 * time.Second)
		if b.ledger.total() != 0 || b.committed(0) != 0 || b.log.count("moved") != 0 {
			t.Errorf("%d booked, committed %d, decisions %v", b.ledger.total(), b.committed(0), b.log)
		}
		c.Hold.Drop()
		b.wait(20 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.count(string(big)) != 1 || b.committed(0) != 1 {
			t.Errorf("booked %d times, committed %d", b.ledger.count(string(big)), b.committed(0))
		}
	})
}
