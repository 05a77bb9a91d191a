package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// asker is a probe that answers from a list, the last answer again and again.
type asker struct {
	findings []effect.Finding
	errs     []error
	at       []time.Time
}

func (a *asker) ask(context.Context, effect.Input) (effect.Finding, error) {
	n := len(a.at)
	a.at = append(a.at, time.Now())
	var err error
	if n < len(a.errs) {
		err = a.errs[n]
	}
	return a.findings[min(n, len(a.findings)-1)], err
}

func probed(s *script, a *asker, settled time.Duration) effect.Effect {
	return effect.Probed(s.run, a.ask, effect.ProbedOptions{Settled: settled})
}

func TestProbeThatSaysAppliedSeals(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{errPlain}}
		a := &asker{findings: []effect.Finding{effect.Applied(effect.Receipt{EffectID: "booking 7", Payload: []byte("paid")})}}
		b.runFor(20*time.Second, probed(s, a, 5*time.Second), b.options())
		r := b.record("a")
		if s.count() != 1 || r.State != fencedriver.Done || r.EffectID != "booking 7" || string(r.Receipt) != "paid" {
			t.Errorf("%d runs, record %s with id %q and receipt %q", s.count(), r.State, r.EffectID, r.Receipt)
		}
		if len(a.at) != 1 || a.at[0].Sub(s.at[0]) < 5*time.Second || a.at[0].Sub(s.at[0]) > 6*time.Second {
			t.Errorf("asked at %v, the attempt ended at %v; the answer is final after 5 s", a.at, s.at)
		}
	})
}

func TestOwnAttemptThatWasNotAppliedIsTriedAgain(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{errPlain, nil}}
		a := &asker{findings: []effect.Finding{effect.NotApplied()}}
		b.runFor(20*time.Second, probed(s, a, effect.Immediately), b.options())
		if s.count() != 2 || len(a.at) != 1 || b.log.count("requeued") != 1 {
			t.Errorf("%d runs, %d askings, decisions %v", s.count(), len(a.at), b.log)
		}
		if d := s.at[1].Sub(s.at[0]); d < 900*time.Millisecond {
			t.Errorf("the second attempt came after %v: it goes the way of a temporary error", d)
		}
		if r := b.record("a"); r.State != fencedriver.Done || r.Attempt != 2 {
			t.Errorf("record %s, attempt %d", r.State, r.Attempt)
		}
		if b.log.count("in_doubt") != 0 {
			t.Errorf("the copy was in doubt although the sink had said: not applied; %v", b.log)
		}
	})
}

func TestTakeoverThatWasNotAppliedRunsAtOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.abandon("a", "order a", fencedriver.KindProbed, time.Second)
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{nil}}
		a := &asker{findings: []effect.Finding{effect.NotApplied()}}
		start := time.Now()
		b.runFor(10*time.Second, probed(s, a, 3*time.Second), b.options())
		// The lease ended after a second, and the answer is final 3 s later.
		if len(a.at) != 1 || a.at[0].Sub(start) < 4*time.Second || a.at[0].Sub(start) > 5*time.Second {
			t.Fatalf("asked at %v after the start", a.at)
		}
		if s.count() != 1 || s.at[0].Sub(a.at[0]) > 100*time.Millisecond || b.record("a").State != fencedriver.Done {
			t.Errorf("%d runs at %v, record %s", s.count(), s.at, b.record("a").State)
		}
	})
}

func TestProbeThatCannotSayBacksOffThenParks(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		b.produce("b", "other", "order b")
		s := &script{b: b, answers: []error{errPlain, nil}}
		a := &asker{findings: []effect.Finding{effect.CannotSay()}, errs: []error{errors.New("probe is down")}}
		opts := b.options()
		opts.Concurrency = 1
		b.runFor(time.Minute, probed(s, a, effect.Immediately), opts)
		if len(a.at) != effect.DefaultProbeAttempts {
			t.Fatalf("asked %d times, want %d", len(a.at), effect.DefaultProbeAttempts)
		}
		for i, want := range []time.Duration{1, 2, 4, 8} {
			if got := a.at[i+1].Sub(a.at[i]); got < want*time.Second || got > (want+1)*time.Second {
				t.Errorf("asking %d came %v after the one before, want about %d s", i+2, got, want)
			}
		}
		r := b.record("a")
		if s.count() != 2 || r.State != fencedriver.Dead || !r.InDoubt || b.log.count("parked") != 1 {
			t.Errorf("%d runs, record %s, in doubt %v, decisions %v", s.count(), r.State, r.InDoubt, b.log)
		}
		if b.committed(0) != 2 {
			t.Errorf("committed %d, want 2", b.committed(0))
		}
	})
}

func TestPanicAndGoexitInAProbeCannotSay(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("probe") }, "goexit": goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				b.abandon("a", "order a", fencedriver.KindProbed, time.Second)
				b.produce("a", "k", "order a")
				asked := 0
				probe := func(context.Context, effect.Input) (effect.Finding, error) {
					if asked++; asked == 2 {
						end()
					}
					return effect.NotApplied(), nil
				}
				// The first answer lets the effect run, which ends unknown; the
				// second asking dies and must not be taken for the first answer.
				s := &script{b: b, answers: []error{errPlain, nil}}
				b.runFor(30*time.Second, effect.Probed(s.run, probe, effect.ProbedOptions{Settled: effect.Immediately}), b.options())
				if asked != 3 || s.count() != 2 || b.record("a").State != fencedriver.Done {
					t.Errorf("asked %d times, %d runs, record %s", asked, s.count(), b.record("a").State)
				}
			})
		})
	}
}
