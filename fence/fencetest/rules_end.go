package fencetest

import (
	"github.com/oncefence/oncefence/fence/driver"
)

// ended is what a hand-over or a bury leaves.
func ended(state driver.State, t driver.Transition, now int64) driver.Record {
	return driver.Record{
		State: state, Kind: t.Kind, InDoubt: t.InDoubt, Token: t.Token, Attempt: t.Attempt, Step: t.Step, Takeovers: t.Takeovers,
		Fingerprint: t.Fingerprint, AttemptEnd: t.AttemptEnd, FirstSeen: t.FirstSeen, Expire: now + t.Retention.Microseconds(),
		Origin: t.Origin, Reason: t.Reason, Steps: t.Steps,
	}
}

var endOps = map[driver.Op]driver.State{driver.HandOver: driver.Requeued, driver.Bury: driver.Dead}

// endRules: hand over and bury.
var endRules = []Rule{
	{
		Name: "end/written", Says: "hand over makes the record requeued, bury makes it dead, each with all that the transition carries, token included",
		check: func(s *scene) {
			for op, state := range endOps {
				h := s.hold(driver.New, s.key(), attempt(2), step(1))
				t := h.says(op, doubtful, func(t *driver.Transition) {
					t.Attempt, t.Step, t.Takeovers, t.AttemptEnd = 7, 6, 2, 123456789
					t.Steps = []driver.Step{{Name: "a", Receipt: []byte("x")}}
				})
				out := s.does(driver.OK, t)
				s.equal("after "+op.String(), h.get(), ended(state, t, out.Now))
			}
		},
	},
	{
		Name: "end/attempt-end", Says: "the end of the attempt that a verdict wrote stays through hand over and bury, unless the transition names a later one: a probe's answer is final only some time after it",
		check: func(s *scene) {
			for op := range endOps {
				h := s.hold(driver.New, s.key())
				said := h.does(driver.Retry, doubtful)
				h.does(op, doubtful)
				s.want(h.get().AttemptEnd == said.Now, "after %v it is %d, want %d", op, h.get().AttemptEnd, said.Now)
				next := s.hold(driver.InDoubt, h.key(), attempt(2))
				s.want(next.rec.AttemptEnd == said.Now, "the next claim has %d, want %d", next.rec.AttemptEnd, said.Now)
				later := said.Now + long.Microseconds()
				next.does(driver.GiveUp)
				next.does(op, func(t *driver.Transition) { t.AttemptEnd = later })
				s.want(h.get().AttemptEnd == later, "a later end was not kept")
			}
		},
	},
	{
		Name: "end/ended-lease", Says: "hand over and bury are accepted after the lease ended while the token is still the record's",
		check: func(s *scene) {
			for op := range endOps {
				h := s.lapse(driver.New, s.key())
				h.does(op)
			}
		},
	},
	{
		Name: "end/repeated", Says: "a hand-over or bury sent again with the record's own token is answered repeated and writes nothing",
		check: func(s *scene) {
			for op := range endOps {
				h := s.hold(driver.New, s.key())
				h.does(op)
				before := h.get()
				s.does(driver.Repeated, h.says(op))
				s.unchanged(h.key(), before, "the same "+op.String()+" again")
			}
		},
	},
	{
		Name: "end/refused", Says: "a hand-over or bury with another token than the record's is refused in every state, shows the record and writes nothing",
		check: func(s *scene) {
			for op := range endOps {
				for _, first := range []driver.Op{driver.NoOp, driver.HandOver, driver.Bury, driver.Seal} {
					h := s.hold(driver.New, s.key())
					if first != driver.NoOp {
						h.does(first)
					}
					before := h.get()
					s.equal("the answer's record", s.does(driver.Refused, h.says(op, stranger)).Record, before)
					s.unchanged(h.key(), before, "a stranger's "+op.String())
				}
				s.does(driver.Refused, s.absent().says(op))
			}
		},
	},
	{
		Name: "end/moved-on", Says: "a late hand-over on a dead or sealed key, and a late bury on a requeued or sealed one, are refused though the token is the record's",
		check: func(s *scene) {
			for op := range endOps {
				for _, first := range []driver.Op{driver.HandOver, driver.Bury, driver.Seal} {
					if op == first {
						continue
					}
					h := s.hold(driver.New, s.key())
					h.does(first)
					before := h.get()
					s.does(driver.Refused, h.says(op))
					s.unchanged(h.key(), before, "a late "+op.String())
				}
			}
		},
	},
	{
		Name: "end/late-on-next-holder", Says: "a hand-over or bury sent again after the key was claimed anew does nothing to the new holder",
		check: func(s *scene) {
			for op := range endOps {
				h := s.hold(driver.New, s.key())
				h.does(op)
				next := s.hold(driver.New, h.key(), attempt(2))
				s.does(driver.Refused, h.says(op))
				s.unchanged(h.key(), next.rec, "an old "+op.String())
			}
		},
	},
	{
		Name: "bury/raises", Says: "bury on a record that is dead in doubt, with its token, raises the attempt, never lowers it, and keeps the doubt; once the doubt is resolved it raises nothing, so that a replay's copy finds the key open",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(2))
			h.does(driver.Bury, doubtful)
			want := h.get()
			raise := func(n uint32) func(*driver.Transition) {
				return func(t *driver.Transition) { t.Attempt = n }
			}
			h.does(driver.Bury, raise(5))
			want.Attempt = 5
			s.equal("after a bury at 5", h.get(), want)
			s.does(driver.Repeated, h.says(driver.Bury, raise(3)))
			s.does(driver.Refused, h.says(driver.Bury, raise(9), stranger))
			s.equal("after a bury at 3 and a stranger's at 9", h.get(), want)
			s.answers(driver.IsDead, h.key(), attempt(5))

			h.does(driver.Resolve)
			resolved := h.get()
			s.does(driver.Repeated, h.says(driver.Bury, raise(5)))
			s.does(driver.Refused, h.says(driver.Bury, raise(7)))
			s.equal("after a bury at 7 of a resolved key", h.get(), resolved)
			s.answers(driver.New, h.key(), attempt(6))
		},
	},
}
