package fencetest

import (
	"github.com/oncefence/oncefence/fence/driver"
)

func doubtful(t *driver.Transition)       { t.InDoubt = true }
func certain(t *driver.Transition)        { t.InDoubt = false }
func (s *scene) due(t *driver.Transition) { t.Due = s.h.Lease }

// reclaimRules: doubt, and which claims may come back to it.
var reclaimRules = []Rule{
	{
		Name: "doubt/requeued", Says: "doubt is sticky: a claim on a requeued key with doubt is in doubt",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key())
			first.does(driver.HandOver, doubtful)
			s.want(first.get().InDoubt, "requeued lost the doubt")
			h := s.hold(driver.InDoubt, first.key(), attempt(2))
			s.want(h.rec.InDoubt && h.rec.Takeovers == 0, "doubt %v, takeovers %d", h.rec.InDoubt, h.rec.Takeovers)
		},
	},
	{
		Name: "doubt/retry", Says: "doubt is sticky: a claim on retry(m) with doubt is in doubt when it runs, and carries it when it only requeues",
		check: func(s *scene) {
			for _, due := range []bool{true, false} {
				first := s.hold(driver.New, s.key(), s.short)
				first.does(driver.Retry, doubtful, func(t *driver.Transition) {
					if due {
						s.due(t)
					}
				})
				s.pass()
				want := driver.Requeuing
				if due {
					want = driver.InDoubt
				}
				h := s.hold(want, first.key())
				s.want(h.rec.InDoubt && h.rec.Takeovers == 0, "doubt %v, takeovers %d", h.rec.InDoubt, h.rec.Takeovers)
			}
		},
	},
	{
		Name: "doubt/begin", Says: "doubt is sticky: the next attempt in place under the same claim carries it",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Retry, doubtful)
			h.does(driver.Begin)
			s.want(h.get().InDoubt, "begin dropped the doubt")
		},
	},
	{
		Name: "doubt/kept-at-takeover", Says: "doubt is sticky: renewals, kept steps and further takeovers do not clear it",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key())
			h := s.lapse(driver.InDoubt, first.key())
			h.does(driver.Renew, func(t *driver.Transition) { t.Lease = s.h.Lease })
			h.does(driver.Keep)
			s.want(h.get().InDoubt, "it was cleared")
			s.pass()
			s.hold(driver.InDoubt, first.key())
		},
	},
	{
		Name: "doubt/kind", Says: "while there is doubt the record keeps the kind that left it; without doubt it has the claim's",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key(), kind(driver.KindProbed))
			h := s.hold(driver.InDoubt, first.key(), kind(driver.KindIdempotent))
			s.want(h.rec.Kind == driver.KindProbed, "doubt left by probed became %v", h.rec.Kind)
			h.does(driver.HandOver, certain)
			again := s.hold(driver.New, first.key(), kind(driver.KindAtMostOnce), attempt(h.rec.Attempt+1))
			s.want(again.rec.Kind == driver.KindAtMostOnce, "without doubt the kind is %v, want the claim's", again.rec.Kind)
		},
	},
	{
		Name: "doubt/dead-reopens", Says: "dead(n) in doubt opens to an attempt above n as in doubt, if the sink can be asked or dedupes",
		check: func(s *scene) {
			for _, k := range []driver.Kind{driver.KindIdempotent, driver.KindProbed} {
				first := s.hold(driver.New, s.key(), kind(k))
				first.does(driver.Bury, doubtful)
				s.answers(driver.IsDead, first.key(), kind(k))
				h := s.hold(driver.InDoubt, first.key(), kind(k), attempt(2))
				s.want(h.rec.InDoubt && h.rec.Kind == k, "doubt %v, kind %v", h.rec.InDoubt, h.rec.Kind)
			}
		},
	},
	{
		Name: "doubt/at-most-once-closed", Says: "dead in doubt under at-most-once opens to no attempt until a person resolves it",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key(), kind(driver.KindAtMostOnce))
			first.does(driver.Bury, doubtful)
			s.answers(driver.IsDead, first.key(), kind(driver.KindAtMostOnce), attempt(2))
			s.answers(driver.IsDead, first.key(), kind(driver.KindIdempotent), attempt(9))
			first.does(driver.Resolve)
			s.answers(driver.IsDead, first.key(), kind(driver.KindAtMostOnce), attempt(1))
			s.answers(driver.New, first.key(), kind(driver.KindAtMostOnce), attempt(2))
		},
	},
	{
		Name: "doubt/other-kind-closed", Says: "dead in doubt opens to no claim of another kind than the one that left the doubt",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key(), kind(driver.KindProbed))
			first.does(driver.Bury, doubtful)
			s.answers(driver.IsDead, first.key(), kind(driver.KindIdempotent), attempt(2))
			s.answers(driver.InDoubt, first.key(), kind(driver.KindProbed), attempt(2))
		},
	},
}
