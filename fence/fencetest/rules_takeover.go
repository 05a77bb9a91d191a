package fencetest

import (
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// takeoverRules: claims after a lease ended.
var takeoverRules = []Rule{
	{
		Name: "takeover/in-doubt", Says: "a claim on a lease that ended without a verdict is in doubt: takeovers and attempt grow by one, the step stays, the attempt ended at the lease's end at the latest",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key(), attempt(2), step(1))
			out := s.answers(driver.InDoubt, first.key(), attempt(2), step(0))
			r := out.Record
			s.want(r.InDoubt, "the record carries no doubt")
			s.want(r.Attempt == 3, "the attempt is %d, want 3", r.Attempt)
			s.want(r.Takeovers == 1, "%d takeovers, want 1", r.Takeovers)
			s.want(r.Step == 1, "the step is %d, want 1: a takeover adds nothing to it", r.Step)
			s.want(r.AttemptEnd == first.rec.LeaseEnd, "the end of the attempt is %d, want the lease's end %d", r.AttemptEnd, first.rec.LeaseEnd)
			s.want(r.FirstSeen == first.rec.FirstSeen && r.Origin == first.rec.Origin, "first seen or the origin of the first claim is lost")
			s.want(r.LeaseEnd == out.Now+long.Microseconds(), "the new lease does not start now")
			s.want(r.Prior != nil, "the record that the claim found is not kept")
			s.equal("the record that the claim found", *r.Prior, first.rec)
			s.equal("the stored record", first.get(), r)
		},
	},
	{
		Name: "takeover/count", Says: "each takeover counts once more",
		check: func(s *scene) {
			h := s.lapse(driver.New, s.key())
			for n := uint32(1); n <= 3; n++ {
				h = s.lapse(driver.InDoubt, h.key())
				s.want(h.rec.Takeovers == n && h.rec.Attempt == n+1, "takeover %d: takeovers %d, attempt %d", n, h.rec.Takeovers, h.rec.Attempt)
			}
		},
	},
	{
		Name: "takeover/higher-delivery", Says: "in doubt the attempt is the larger of the delivery's and the record's plus one; a copy with a higher attempt brings its own step",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key(), attempt(2), step(1))
			h := s.hold(driver.InDoubt, first.key(), attempt(7), step(5))
			s.want(h.rec.Attempt == 7 && h.rec.Step == 5, "attempt %d, step %d, want 7 and 5", h.rec.Attempt, h.rec.Step)
		},
	},
	{
		Name: "takeover/transactional", Says: "a transactional claim that ended without a verdict was rolled back: a transactional claim after it is new, one of another kind is in doubt",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key(), kind(driver.KindTransactional))
			h := s.hold(driver.New, first.key(), kind(driver.KindTransactional))
			s.want(!h.rec.InDoubt && h.rec.Takeovers == 0, "it carries doubt or counts as a takeover")
			other := s.lapse(driver.New, s.key(), kind(driver.KindTransactional))
			s.hold(driver.InDoubt, other.key())
		},
	},
	{
		Name: "takeover/giving-up", Says: "a claim on give_up goes on with the dead letter: same attempt, step, reason and doubt, and no takeover is counted",
		check: func(s *scene) {
			for _, doubt := range []bool{false, true} {
				first := s.hold(driver.New, s.key(), attempt(2), step(1), s.short)
				first.does(driver.GiveUp, func(t *driver.Transition) { t.InDoubt = doubt })
				s.pass()
				h := s.hold(driver.GivingUp, first.key(), attempt(1))
				s.want(h.rec.Verdict == driver.VerdictGiveUp, "the verdict is %v", h.rec.Verdict)
				s.want(h.rec.Attempt == 2 && h.rec.Step == 1, "attempt %d, step %d, want 2 and 1", h.rec.Attempt, h.rec.Step)
				s.want(h.rec.Reason == "because", "the reason is %q", h.rec.Reason)
				s.want(h.rec.InDoubt == doubt, "doubt is %v, want %v", h.rec.InDoubt, doubt)
				s.want(h.rec.Takeovers == 0, "%d takeovers", h.rec.Takeovers)
			}
		},
	},
	{
		Name: "takeover/requeuing", Says: "a claim on retry(m) before its due time produces the copy again: requeuing, same attempt, next attempt m, no new doubt, no takeover",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key(), s.short)
			first.does(driver.Retry)
			s.pass()
			before := first.get()
			h := s.hold(driver.Requeuing, first.key())
			s.want(h.rec.Verdict == driver.VerdictRetry && h.rec.NextAttempt == 2 && h.rec.NextStep == 1, "verdict %v, next attempt %d, next step %d", h.rec.Verdict, h.rec.NextAttempt, h.rec.NextStep)
			s.want(h.rec.Due == before.Due && h.rec.AttemptEnd == before.AttemptEnd, "due time or end of the attempt moved")
			s.want(h.rec.Attempt == 1 && h.rec.Takeovers == 0 && !h.rec.InDoubt, "attempt %d, takeovers %d, doubt %v", h.rec.Attempt, h.rec.Takeovers, h.rec.InDoubt)
			h.does(driver.HandOver)
			s.answers(driver.Superseded, first.key())
		},
	},
	{
		Name: "takeover/in-place", Says: "with retries in place a claim on retry(m) before its due time is held for the time left, and writes nothing",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key(), s.short)
			first.does(driver.Retry)
			s.pass()
			before := first.get()
			out := s.answers(driver.Held, first.key(), inPlace)
			s.want(out.Left == time.Duration(before.Due-out.Now)*time.Microsecond, "%v left, want the time to the due time", out.Left)
			s.unchanged(first.key(), before, "a held claim")
		},
	},
	{
		Name: "takeover/retry-due", Says: "a claim on retry(m) at its due time runs attempt m at its step: new, no doubt, no takeover",
		check: func(s *scene) {
			for _, tweak := range []func(*driver.Claim){func(*driver.Claim) {}, inPlace} {
				first := s.hold(driver.New, s.key(), s.short)
				first.does(driver.Retry, func(t *driver.Transition) { t.Due, t.NextAttempt, t.NextStep = s.h.Lease, 5, 4 })
				s.pass()
				h := s.hold(driver.New, first.key(), tweak)
				s.want(h.rec.Attempt == 5 && h.rec.Step == 4, "attempt %d, step %d, want 5 and 4", h.rec.Attempt, h.rec.Step)
				s.want(h.rec.Verdict == driver.NoVerdict && h.rec.Takeovers == 0 && !h.rec.InDoubt, "verdict %v, takeovers %d, doubt %v", h.rec.Verdict, h.rec.Takeovers, h.rec.InDoubt)
			}
		},
	},
	{
		Name: "takeover/retry-copy", Says: "the copy itself (an attempt of m or more) runs on retry(m), at its own attempt and step, also before the due time",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key(), s.short)
			first.does(driver.Retry)
			s.pass()
			h := s.hold(driver.New, first.key(), attempt(3), step(2))
			s.want(h.rec.Attempt == 3 && h.rec.Step == 2 && h.rec.Verdict == driver.NoVerdict, "attempt %d, step %d, verdict %v", h.rec.Attempt, h.rec.Step, h.rec.Verdict)
		},
	},
	{
		Name: "takeover/until", Says: "an ended lease is held, not taken over, when the store's clock is past the time that the claim names; 0 is past always",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key())
			for _, until := range []int64{0, s.now() - 1} {
				out := s.answers(driver.Held, first.key(), func(c *driver.Claim) { c.TakeoverUntil = until })
				s.want(out.Left == 0, "%v left of an ended lease", out.Left)
				s.unchanged(first.key(), first.rec, "a claim that may not take over")
			}
			s.answers(driver.InDoubt, first.key(), func(c *driver.Claim) { c.TakeoverUntil = s.now() + long.Microseconds() })
		},
	},
}
