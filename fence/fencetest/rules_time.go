package fencetest

import (
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

func (s *scene) brief(t *driver.Transition) { t.Retention = s.h.Lease }

// timeRules: retention and expiry.
var timeRules = []Rule{
	{
		Name: "time/expires", Says: "done, requeued and dead without doubt are gone when their retention is over: absent to get, hidden from scan, new to a claim",
		check: func(s *scene) {
			for _, op := range []driver.Op{driver.Seal, driver.HandOver, driver.Bury} {
				h, other := s.hold(driver.New, s.key()), s.hold(driver.New, s.key())
				h.does(op, s.brief)
				other.does(op, s.brief)
				s.pass()
				s.want(h.get().State == driver.Absent, "%v: get shows %v", op, h.get().State)
				_, shown := s.scan(driver.Filter{})[h.key()]
				s.want(!shown, "%v: scan shows it", op)
				next := s.hold(driver.New, h.key())
				s.want(next.rec.Prior == nil && next.rec.Attempt == 1, "%v: the claim found a record", op)
				late := s.applyAll([]driver.Transition{other.says(driver.Seal)})[0]
				s.want(late.Outcome == driver.Vanished, "%v: a late seal was answered %v, want vanished", op, late.Outcome)
			}
		},
	},
	{
		Name: "time/stays", Says: "a record stays for its retention, and for ever with a retention of 0",
		check: func(s *scene) {
			for _, keep := range []time.Duration{0, 100 * s.h.Lease} {
				for _, op := range []driver.Op{driver.Seal, driver.HandOver, driver.Bury} {
					h := s.hold(driver.New, s.key())
					h.does(op, func(t *driver.Transition) { t.Retention = keep })
					before := h.get()
					s.want((before.Expire == 0) == (keep == 0), "%v: retention %v gave expiry %d", op, keep, before.Expire)
					s.pass()
					s.purge(1000)
					s.unchanged(h.key(), before, "less than its retention")
				}
			}
		},
	},
	{
		Name: "time/doubt-stays", Says: "doubt is never purged by time: pending, however old its lease, and requeued or dead in doubt stay",
		check: func(s *scene) {
			pending := s.hold(driver.New, s.key(), s.short)
			given := s.hold(driver.New, s.key(), s.short)
			given.does(driver.GiveUp)
			requeued, dead := s.hold(driver.New, s.key()), s.hold(driver.New, s.key())
			requeued.does(driver.HandOver, doubtful, s.brief)
			dead.does(driver.Bury, doubtful, s.brief)
			var before []driver.Record
			all := []holder{pending, given, requeued, dead}
			for _, h := range all {
				before = append(before, h.get())
			}
			s.passFor(3 * s.h.Lease)
			if s.h.FreeTime {
				s.passFor(90 * 24 * time.Hour)
			}
			s.purge(1000)
			for i, h := range all {
				s.unchanged(h.key(), before[i], "time and a purge")
			}
			s.answers(driver.InDoubt, pending.key())
			s.answers(driver.InDoubt, dead.key(), attempt(2))
		},
	},
	{
		Name: "time/resolved-expires", Says: "a key that was resolved as not applied is dead without doubt and expires by the retention that the resolution gave it",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Bury, doubtful)
			h.does(driver.Resolve, s.brief)
			s.pass()
			s.want(h.get().State == driver.Absent, "it is %v", h.get().State)
		},
	},
	{
		Name: "time/claim-stops-expiry", Says: "a claim on a record with a retention makes it pending, which does not expire",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key())
			first.does(driver.HandOver, func(t *driver.Transition) { t.Retention = 20 * s.h.Lease })
			h := s.hold(driver.New, first.key(), attempt(2))
			s.passFor(21 * s.h.Lease)
			s.purge(1000)
			s.unchanged(h.key(), h.rec, "the retention of the record that it found")
		},
	},
	{
		Name: "time/purge", Says: "purge removes at most the limit, says how many, and in the end all that is expired (a store that expires by itself says 0); living records stay",
		check: func(s *scene) {
			var gone []holder
			for range 7 {
				h := s.hold(driver.New, s.key())
				h.does(driver.Seal, s.brief)
				gone = append(gone, h)
			}
			stays := s.hold(driver.New, s.key())
			stays.does(driver.Seal)
			before := stays.get()
			s.pass()
			total := 0
			for range 20 {
				n := s.purge(3)
				s.want(n <= 3, "a purge of at most 3 says %d", n)
				total += n
			}
			s.want(total == 0 || total == len(gone), "%d purged, want %d, or 0 from a store that expires by itself", total, len(gone))
			for _, h := range gone {
				s.want(h.get().State == driver.Absent, "an expired key is %v", h.get().State)
			}
			s.unchanged(stays.key(), before, "a purge")
			s.want(s.purge(0) == 0, "a purge of at most 0 removed something")
		},
	},
	{
		Name: "time/purge-moved-on", Says: "purge does not remove a key that expired once and lives again",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key())
			first.does(driver.Seal, s.brief)
			s.pass()
			again := s.hold(driver.New, first.key())
			s.purge(1000)
			s.unchanged(first.key(), again.rec, "a purge")
			again.does(driver.Seal)
			before := again.get()
			s.purge(1000)
			s.unchanged(first.key(), before, "a purge")
		},
	},
	{
		Name: "time/tombstone", Says: "a released key keeps its nonce and token for the tombstone's hour, and no longer than it has to", needs: needFreeTime,
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Release)
			s.passFor(driver.TombstoneLife - time.Minute)
			s.purge(1000)
			s.refuses(driver.ErrReleased, h.asked)
			s.passFor(time.Minute)
			n := s.purge(1000)
			s.want(n <= 1, "%d purged of one tombstone", n)
			s.answers(driver.New, h.key())
		},
	},
}

func (s *scene) purge(limit int) int {
	n, err := s.store.Purge(s.ctx, s.space, limit)
	s.want(err == nil, "purge failed: %w", err)
	return n
}
