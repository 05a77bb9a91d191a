package consumer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// leave leaves a key as a process that died after it had said its verdict.
func (b *bench) leave(id, value string, t func(h *fence.Hold) fencedriver.Transition) {
	b.t.Helper()
	s := b.space()
	c := b.claim(s, id, value, fencedriver.KindIdempotent, time.Second)
	if a := s.Apply(b.t.Context(), []fencedriver.Transition{t(c.Hold)}); a[0].Err != nil || a[0].Outcome != fencedriver.OK {
		b.t.Fatal(a[0])
	}
	c.Hold.Drop()
	_ = s.Close(b.t.Context())
}

// A process died between its verdict retry and the copy, which may be in the
// broker or not.
func TestARetryThatAnotherProcessSaidIsProducedAgain(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.leave("a", "order a", func(h *fence.Hold) fencedriver.Transition {
			return h.Retry(fence.Verdict{Reason: "busy"}, 20*time.Second)
		})
		said := time.Now()
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{nil}}
		opts := b.options()
		opts.Schedule = exact(time.Second, 5*time.Second, 30*time.Second)
		b.runFor(40*time.Second, idempotent(s.run), opts)
		if s.count() != 1 || s.runs[0].Attempt != 2 || s.runs[0].Step != 1 || s.at[0].Sub(said) < 20*time.Second || s.at[0].Sub(said) > 22*time.Second {
			t.Fatalf("ran %d times, at %v after the verdict: %+v", s.count(), s.at[0].Sub(said), s.runs)
		}
		if b.log.count("requeued") != 1 || b.log.count("in_doubt") != 0 || b.record("a").State != fencedriver.Done || b.committed(0) != 1 {
			t.Errorf("decisions %v, record %s, committed %d", b.log, b.record("a").State, b.committed(0))
		}
	})
}

func TestARetryThatIsDueGoesOnAtOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.leave("a", "order a", func(h *fence.Hold) fencedriver.Transition {
			return h.Retry(fence.Verdict{InDoubt: true, Reason: "time-out"}, time.Second)
		})
		b.wait(3 * time.Second)
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, idempotent(s.run), b.options())
		if s.count() != 1 || s.runs[0].Attempt != 2 || b.log.count("requeued") != 0 || b.log.count("in_doubt") != 1 {
			t.Errorf("runs %+v, decisions %v: no new doubt, and the old one sticks", s.runs, b.log)
		}
	})
}

func TestAGiveUpThatAnotherProcessSaidIsFinished(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.leave("a", "order a", func(h *fence.Hold) fencedriver.Transition {
				return h.GiveUp(fence.Verdict{InDoubt: doubt, Reason: "no such customer"})
			})
			b.produce("a", "k", "order a")
			s := &script{b: b, answers: []error{nil}}
			b.runFor(5*time.Second, idempotent(s.run), b.options())
			r := b.record("a")
			if s.count() != 0 || r.State != fencedriver.Dead || r.InDoubt != doubt || r.Attempt != 1 || b.committed(0) != 1 {
				t.Errorf("%d runs, record %s, in doubt %v, attempt %d, committed %d", s.count(), r.State, r.InDoubt, r.Attempt, b.committed(0))
			}
			class := map[bool]string{false: "", true: "in_doubt"}[doubt]
			if d := b.deadLetters(); len(d) != 1 || header(d[0], "oncefence-reason") != "no such customer" || header(d[0], "oncefence-class") != class {
				t.Errorf("dead letters %v", d)
			}
		})
	}
}

func TestTooManyCrashesEndAsDeadLetter(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 3 { // each takes over from the one before
			b.abandon("a", "order a", fencedriver.KindIdempotent, time.Second)
			b.wait(2 * time.Second)
			if r := b.record("a"); int(r.Takeovers) != i {
				t.Fatalf("%d takeovers after %d crashes", r.Takeovers, i+1)
			}
		}
		b.produce("a", "k", "order a")
		b.produce("b", "k", "order b")
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, idempotent(s.run), b.options())
		r := b.record("a")
		if s.count() != 1 || r.State != fencedriver.Dead || !r.InDoubt || b.ledger.count("order b") != 1 || b.committed(0) != 2 {
			t.Errorf("%d runs, record %s, in doubt %v, committed %d", s.count(), r.State, r.InDoubt, b.committed(0))
		}
		if d := b.deadLetters(); len(d) != 1 || header(d[0], "oncefence-reason") != "crashed 3 times" {
			t.Errorf("dead letters %v", d)
		}
	})
}

// From the crash before the last a record runs alone, its neighbours not.
func TestASuspectRunsAlone(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		for range 2 {
			b.abandon("suspect", "suspect", fencedriver.KindIdempotent, time.Second)
			b.abandon("other", "other suspect", fencedriver.KindIdempotent, time.Second)
			b.wait(2 * time.Second)
		}
		for i := range 100 {
			b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%9), fmt.Sprint("order ", i))
			if i == 30 {
				b.produce("suspect", "k3", "suspect")
				b.produce("other", "k3", "other suspect")
			}
		}
		w := &watcher{b: b, lane: func(in effect.Input) string { return string(in.MessageKey) }, take: uneven}
		besides := 0
		e := idempotent(func(ctx contextT, in effect.Input) (effect.Receipt, error) {
			suspect := string(in.Payload) == "suspect" || string(in.Payload) == "other suspect"
			w.mu.Lock()
			if suspect && w.all > 0 {
				besides++
			}
			w.mu.Unlock()
			return w.run(ctx, in)
		})
		b.runFor(20*time.Second, e, b.options())
		if besides != 0 || b.ledger.total() != 102 || !w.ordered() || b.committed(0)+b.committed(1) != 102 {
			t.Errorf("%d suspects ran beside others, %d booked, in order %v", besides, b.ledger.total(), w.ordered())
		}
	})
}

// A suspect whose dead letter cannot be produced, or which cannot be read, does
// not hold up all others.
func TestASuspectThatCannotGoOnHoldsUpNobody(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		for range 2 {
			b.abandon("suspect", "suspect", fencedriver.KindIdempotent, time.Second)
			b.wait(2 * time.Second)
		}
		b.produce("suspect", "", "suspect")
		opts := b.options()
		opts.Producer = b.failingProducer(func(r recordT) bool { return true })
		e := idempotent(func(ctx contextT, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "suspect" {
				return effect.Receipt{}, effect.Permanent(errPlain)
			}
			return b.ledger.bookEffect(ctx, in)
		})
		_, stop := b.start(e, opts)
		b.wait(5 * time.Second)
		for i := range 50 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		b.wait(5 * time.Second)
		if b.ledger.total() != 50 {
			t.Errorf("%d of 50 booked", b.ledger.total())
		}
		_ = stop()
	})
}
