package consumer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

var errPlain = errors.New("connection reset")

// noRetries is a schedule without jitter.
func exact(delays ...time.Duration) requeue.Schedule {
	return requeue.Schedule{Delays: append([]time.Duration{}, delays...), Jitter: -1}
}

func TestIdempotentRunsAnUnknownOutcomeAgainWithDoubt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{errPlain, nil}}
		_, stop := b.start(effect.Idempotent(s.run, forever()), b.options())
		b.wait(500 * time.Millisecond)
		if r := b.record("a"); r.State != fencedriver.Requeued || !r.InDoubt || r.Attempt != 2 {
			t.Errorf("after an unknown outcome the record is %s, in doubt %v, attempt %d", r.State, r.InDoubt, r.Attempt)
		}
		b.wait(2 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if s.count() != 2 || s.runs[0].EffectID != s.runs[1].EffectID || s.runs[1].Attempt != 2 {
			t.Errorf("%d runs: %+v", s.count(), s.runs)
		}
		if b.record("a").State != fencedriver.Done || b.log.count("in_doubt") != 1 || b.log.count("unknown") != 1 || b.committed(0) != 1 {
			t.Errorf("state %s, decisions %v, committed %d", b.record("a").State, b.log, b.committed(0))
		}
	})
}

func TestIdempotentParksWhenTheScheduleIsSpentInDoubt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{errPlain, effect.Temporary(errPlain)}}
		opts := b.options()
		opts.Schedule = exact(time.Second, 2*time.Second)
		b.runFor(10*time.Second, effect.Idempotent(s.run, forever()), opts)
		r := b.record("a")
		if s.count() != 3 || r.State != fencedriver.Dead || !r.InDoubt || r.Attempt != 3 {
			t.Errorf("%d runs, record %s, in doubt %v, attempt %d; want doubt to stick to the last step", s.count(), r.State, r.InDoubt, r.Attempt)
		}
		dead := b.deadLetters()
		if len(dead) != 1 || header(dead[0], "oncefence-class") != "in_doubt" || header(dead[0], "oncefence-reason") != "retries spent" {
			t.Errorf("dead letters %v", dead)
		}
		if b.log.count("parked") != 1 || b.committed(0) != 1 {
			t.Errorf("decisions %v, committed %d", b.log, b.committed(0))
		}
	})
}

func TestIdempotentParksWhatTheSinkHasForgotten(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.abandon("a", "order a", fencedriver.KindIdempotent, time.Second)
		b.wait(2 * time.Hour)
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, effect.Idempotent(s.run, effect.IdempotentOptions{Remembers: time.Hour}), b.options())
		if r := b.record("a"); s.count() != 0 || r.State != fencedriver.Dead || !r.InDoubt {
			t.Errorf("%d runs, record %s, in doubt %v; the sink remembers an hour, the first attempt is two hours old", s.count(), r.State, r.InDoubt)
		}
		if b.log.count("parked") != 1 {
			t.Errorf("decisions %v", b.log)
		}
	})
}

func TestOwnUnknownOutcomeBeyondRemembersIsParked(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{errPlain}}
		opts := b.options()
		opts.Schedule = exact(time.Second, time.Second, time.Second, time.Second)
		b.runFor(20*time.Second, effect.Idempotent(s.run, effect.IdempotentOptions{Remembers: 1500 * time.Millisecond}), opts)
		if r := b.record("a"); s.count() > 3 || r.State != fencedriver.Dead || !r.InDoubt {
			t.Errorf("%d runs, record %s, in doubt %v", s.count(), r.State, r.InDoubt)
		}
	})
}

func TestAtMostOnceParksAnUnknownOutcome(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{errPlain}}
		b.runFor(time.Minute, effect.AtMostOnce(s.run, nil), b.options())
		r := b.record("a")
		if s.count() != 1 || r.State != fencedriver.Dead || !r.InDoubt || r.Kind != fencedriver.KindAtMostOnce {
			t.Errorf("%d runs, record %s, in doubt %v, kind %s", s.count(), r.State, r.InDoubt, r.Kind)
		}
		if dead := b.deadLetters(); len(dead) != 1 || header(dead[0], "oncefence-reason") != "in_doubt" || header(dead[0], "oncefence-error") == "" {
			t.Errorf("dead letters %v", dead)
		}
	})
}

func TestAtMostOnceParksWhatAnotherLeftInDoubt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.abandon("a", "order a", fencedriver.KindAtMostOnce, time.Second)
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{nil}}
		b.runFor(time.Minute, effect.AtMostOnce(s.run, nil), b.options())
		if r := b.record("a"); s.count() != 0 || r.State != fencedriver.Dead || !r.InDoubt {
			t.Errorf("%d runs, record %s, in doubt %v", s.count(), r.State, r.InDoubt)
		}
	})
}

func TestAtMostOnceRetriesWhatWasNotApplied(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
		b.runFor(time.Minute, effect.AtMostOnce(s.run, nil), b.options())
		if s.count() != 2 || b.ledger.count("order a") != 1 || b.record("a").State != fencedriver.Done {
			t.Errorf("%d runs, %s", s.count(), b.record("a").State)
		}
	})
}

func TestDoubtOfAnotherKindIsParked(t *testing.T) {
	for _, left := range []fencedriver.Kind{fencedriver.KindProbed, fencedriver.KindAtMostOnce} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.abandon("a", "order a", left, time.Second)
			b.produce("a", "k", "order a")
			s := &script{b: b, answers: []error{nil}}
			b.runFor(5*time.Second, effect.Idempotent(s.run, forever()), b.options())
			r := b.record("a")
			if s.count() != 0 || r.State != fencedriver.Dead || !r.InDoubt || r.Kind != left {
				t.Errorf("doubt of kind %s: %d runs, record %s, in doubt %v, kind %s", left, s.count(), r.State, r.InDoubt, r.Kind)
			}
			if dead := b.deadLetters(); len(dead) != 1 || header(dead[0], "oncefence-reason") != "doubt left by a consumer of kind "+left.String() {
				t.Errorf("dead letters %v", dead)
			}
		})
	}
}
