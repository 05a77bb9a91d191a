package fencetest

import (
	"github.com/oncefence/oncefence/fence/driver"
)

// verdictRules: retry, give_up, begin, keep.
var verdictRules = []Rule{
	{
		Name: "verdict/written", Says: "a verdict writes the end of the attempt, the doubt and the reason that it says; retry also the next attempt, its step and its due time in store time; the lease stays unless it names one",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			out := h.does(driver.Retry, doubtful)
			want := h.rec
			want.Verdict, want.NextAttempt, want.NextStep, want.Due = driver.VerdictRetry, 2, 1, out.Now+long.Microseconds()
			want.InDoubt, want.AttemptEnd, want.Reason = true, out.Now, "because"
			s.equal("after retry", h.get(), want)
			out = h.does(driver.GiveUp, doubtful, func(t *driver.Transition) { t.Lease = 2 * long })
			want.Verdict, want.NextAttempt, want.NextStep, want.Due = driver.VerdictGiveUp, 0, 0, 0
			want.AttemptEnd, want.LeaseEnd = out.Now, out.Now+2*long.Microseconds()
			s.equal("after give_up", h.get(), want)
		},
	},
	{
		Name: "verdict/refused", Says: "a verdict compares the token and the attempt; otherwise it is refused, shows the record and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(2))
			for _, op := range []driver.Op{driver.Retry, driver.GiveUp} {
				s.equal("the answer's record", s.does(driver.Refused, h.says(op, stranger)).Record, h.rec)
				s.does(driver.Refused, h.says(op, func(t *driver.Transition) { t.Attempt = 1 }))
				s.does(driver.Refused, s.absent().says(op))
			}
			s.unchanged(h.key(), h.rec, "refused verdicts")
		},
	},
	{
		Name: "verdict/ended-lease", Says: "a verdict is accepted after the lease ended while the token is still the record's: no doubt comes from a slow holder",
		check: func(s *scene) {
			h := s.lapse(driver.New, s.key())
			h.does(driver.GiveUp)
			s.answers(driver.GivingUp, h.key())
			h = s.lapse(driver.New, s.key())
			h.does(driver.Retry)
			s.answers(driver.Requeuing, h.key())
		},
	},
	{
		Name: "verdict/repeated", Says: "a verdict said again is answered repeated and moves neither the end of the attempt nor the due time",
		check: func(s *scene) {
			for _, op := range []driver.Op{driver.Retry, driver.GiveUp} {
				h := s.hold(driver.New, s.key())
				h.does(op)
				before := h.get()
				s.does(driver.Repeated, h.says(op))
				s.unchanged(h.key(), before, "the same verdict again")
			}
		},
	},
	{
		Name: "verdict/no-way-back", Says: "retry after give_up is refused: a late double must not undo it",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Retry)
			h.does(driver.GiveUp)
			before := h.get()
			s.does(driver.Refused, h.says(driver.Retry))
			s.unchanged(h.key(), before, "a late retry")
		},
	},
	{
		Name: "begin/next-attempt", Says: "begin starts the next attempt under the same claim and token: verdict taken back, lease starts anew",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), s.short)
			h.does(driver.Retry)
			said := h.get()
			out := h.does(driver.Begin)
			want := said
			want.Attempt, want.Step, want.Verdict, want.NextAttempt, want.NextStep, want.Due = 2, 1, driver.NoVerdict, 0, 0, 0
			want.LeaseEnd = out.Now + long.Microseconds()
			s.equal("after begin", h.get(), want)
			s.does(driver.Repeated, h.says(driver.Begin))
			s.equal("after begin again", h.get(), want)
		},
	},
	{
		Name: "begin/refused", Says: "begin without a verdict of retry, with another token or for another attempt is refused and writes nothing; so is a verdict of the attempt before",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			s.does(driver.Refused, h.says(driver.Begin))
			h.does(driver.Retry)
			before := h.get()
			s.does(driver.Refused, h.says(driver.Begin, stranger))
			s.does(driver.Refused, h.says(driver.Begin, func(t *driver.Transition) { t.Attempt = 7 }))
			s.unchanged(h.key(), before, "refused begins")
			h.does(driver.Begin)
			before = h.get()
			s.does(driver.Refused, h.says(driver.Retry))
			s.does(driver.Refused, h.says(driver.GiveUp))
			s.unchanged(h.key(), before, "verdicts of the attempt before")
			gone := s.hold(driver.New, s.key())
			gone.does(driver.GiveUp)
			s.does(driver.Refused, gone.says(driver.Begin))
		},
	},
	{
		Name: "keep/steps", Says: "kept steps survive a takeover and a put-back, with name, kind and receipt; with fewer steps than are kept nothing is written",
		check: func(s *scene) {
			one := driver.Step{Name: "reserve", Kind: driver.KindProbed, Receipt: []byte{0, 1, 255}}
			two := driver.Step{Name: "charge: \x00 once", Kind: driver.KindAtMostOnce}
			keep := func(steps ...driver.Step) func(*driver.Transition) {
				return func(t *driver.Transition) { t.Steps = steps }
			}
			first := s.hold(driver.New, s.key(), s.short)
			first.does(driver.Keep, keep(one))
			first.does(driver.Keep, keep(one, two))
			s.does(driver.Repeated, first.says(driver.Keep, keep(one)))
			want := first.rec
			want.Steps = []driver.Step{one, two}
			s.equal("after keep", first.get(), want)
			s.pass()
			h := s.hold(driver.InDoubt, first.key())
			s.want(diffSteps(h.rec.Steps, want.Steps) == "", "after a takeover: %s", diffSteps(h.rec.Steps, want.Steps))
			h.does(driver.Release)
			s.want(diffSteps(h.get().Steps, want.Steps) == "", "after a put-back: %s", diffSteps(h.get().Steps, want.Steps))
			s.does(driver.Refused, first.says(driver.Keep, stranger))
		},
	},
	{
		Name: "keep/carried", Says: "steps that a hand-over or a bury carries are in the record and in the claim that comes after",
		check: func(s *scene) {
			for _, op := range []driver.Op{driver.HandOver, driver.Bury} {
				h := s.hold(driver.New, s.key())
				steps := []driver.Step{{Name: "a", Kind: driver.KindIdempotent, Receipt: []byte("x")}, {Name: "b"}}
				h.does(op, func(t *driver.Transition) { t.Steps = steps })
				next := s.hold(driver.New, h.key(), attempt(2))
				s.want(diffSteps(next.rec.Steps, steps) == "", "after %v: %s", op, diffSteps(next.rec.Steps, steps))
			}
		},
	},
}
