package fencetest

import (
	"github.com/oncefence/oncefence/fence/driver"
)

// nonceRules: claims that arrive twice, late, or after their release.
var nonceRules = []Rule{
	{
		Name: "nonce/same-answer", Says: "a claim sent again with its nonce gets the answer that it got, with the same record and token, and writes nothing",
		check: func(s *scene) {
			again := func(h holder, want driver.Answer) {
				out := s.send(h.asked)
				s.want(out.Answer == want, "sent again it was answered %v, before %v", out.Answer, want)
				s.equal("the answer's record", out.Record, h.rec)
				s.unchanged(h.key(), h.rec, "the same claim again")
			}
			first := s.lapse(driver.New, s.key())
			again(first, driver.New)
			again(s.hold(driver.InDoubt, first.key()), driver.InDoubt)
			for op, want := range map[driver.Op]driver.Answer{driver.GiveUp: driver.GivingUp, driver.Retry: driver.Requeuing} {
				first := s.hold(driver.New, s.key(), s.short)
				first.does(op)
				s.pass()
				again(s.hold(want, first.key()), want)
			}
		},
	},
	{
		Name: "nonce/lease-stays", Says: "a claim sent again does not lengthen its lease",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			s.pass()
			out := s.send(h.asked)
			s.want(out.Record.LeaseEnd == h.rec.LeaseEnd, "the lease end moved by %d µs", out.Record.LeaseEnd-h.rec.LeaseEnd)
			s.unchanged(h.key(), h.rec, "the same claim again")
		},
	},
	{
		Name: "nonce/released", Says: "a claim that arrives again after its release is refused as released and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Release)
			s.refuses(driver.ErrReleased, h.asked)
			s.want(h.get().State == driver.Absent, "the key is %v", h.get().State)
			first := s.hold(driver.New, s.key())
			first.does(driver.HandOver)
			h = s.hold(driver.New, first.key(), attempt(2))
			h.does(driver.Release)
			before := h.get()
			s.refuses(driver.ErrReleased, h.asked)
			s.unchanged(h.key(), before, "a released claim")
			s.answers(driver.New, h.key(), attempt(2))
		},
	},
	{
		Name: "nonce/not-after", Says: "a claim that reaches the store after the store time that it names is refused as too late and writes nothing; one in time is not",
		check: func(s *scene) {
			late := func(c *driver.Claim) { c.NotAfter = s.now() - 1 }
			key := s.key()
			s.refuses(driver.ErrTooLate, s.ask(key, late))
			s.want(s.get(key).State == driver.Absent, "it was written")
			first := s.lapse(driver.New, s.key())
			s.refuses(driver.ErrTooLate, s.ask(first.key(), late))
			s.unchanged(first.key(), first.rec, "a claim that came too late")
			s.answers(driver.New, key, func(c *driver.Claim) { c.NotAfter = s.now() + long.Microseconds() })
		},
	},
	{
		Name: "nonce/answered-late", Says: "a claim that was granted gets its answer again also after the time that it names",
		check: func(s *scene) {
			c := s.ask(s.key())
			c.NotAfter = s.now() + s.h.Lease.Microseconds()
			if !s.h.FreeTime { // on a slow store the first one may come too late
				c.NotAfter = s.now() + 20*s.h.Lease.Microseconds()
			}
			granted := s.send(c)
			s.passFor(21 * s.h.Lease)
			out := s.send(c)
			s.want(out.Answer == driver.New && out.Record.Token == granted.Record.Token, "answered %v with token %d, want new with %d", out.Answer, out.Record.Token, granted.Record.Token)
		},
	},
}
