package fencetest

import (
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// claimRules: what a claim meets before any lease has ended.
var claimRules = []Rule{
	{
		Name: "claim/new", Says: "a claim on a key without record is new and writes a pending record with all that the claim brought, under a lease of the store's time",
		check: func(s *scene) {
			key := s.key()
			c := s.ask(key, attempt(4), step(2), kind(driver.KindProbed))
			out := s.send(c)
			s.want(out.Answer == driver.New, "answered %v", out.Answer)
			s.want(out.Now > 0, "the answer carries no store time")
			s.want(out.Record.Token > 0, "the token is 0")
			want := driver.Record{
				State: driver.Pending, Kind: driver.KindProbed, Token: out.Record.Token, Attempt: 4, Step: 2, Fingerprint: c.Fingerprint,
				Nonce: c.Nonce, LeaseEnd: out.Now + c.Lease.Microseconds(), FirstSeen: out.Now, Origin: c.Origin,
			}
			s.equal("the answer's record", out.Record, want)
			s.equal("the stored record", s.get(key), want)
		},
	},
	{
		Name: "claim/duplicate", Says: "a claim on a sealed key is a duplicate, whatever its attempt and kind, and gets the effect id and the receipt",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Seal)
			before := h.get()
			for _, c := range []driver.Claim{s.ask(h.key()), s.ask(h.key(), attempt(9)), s.ask(h.key(), kind(driver.KindAtMostOnce))} {
				out := s.send(c)
				s.want(out.Answer == driver.Duplicate, "answered %v", out.Answer)
				s.want(out.Record.EffectID == "effect-1" && string(out.Record.Receipt) == "receipt", "the effect id or the receipt is missing: %q", out.Record.EffectID)
				s.equal("the answer's record", out.Record, before)
			}
			s.unchanged(h.key(), before, "a duplicate")
		},
	},
	{
		Name: "claim/held", Says: "a claim on a key with a living holder is held, says how much of the lease is left and writes nothing; pending is never a duplicate",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			out := s.answers(driver.Held, h.key(), attempt(7), kind(driver.KindAtMostOnce))
			s.want(out.Left > 0 && out.Left <= long, "the lease has %v left of %v", out.Left, long)
			left := time.Duration(h.rec.LeaseEnd-out.Now) * time.Microsecond
			s.want(out.Left == left, "the lease has %v left, the answer says %v", left, out.Left)
			s.equal("the answer's record", out.Record, h.rec)
			s.unchanged(h.key(), h.rec, "a held claim")
		},
	},
	{
		Name: "claim/held-after-verdict", Says: "a verdict does not free the key: under a living lease a claim is held whatever was said",
		check: func(s *scene) {
			for _, op := range []driver.Op{driver.Retry, driver.GiveUp} {
				h := s.hold(driver.New, s.key())
				h.does(op)
				s.answers(driver.Held, h.key(), attempt(2))
			}
		},
	},
	{
		Name: "claim/superseded", Says: "a claim below a requeued key's attempt is superseded and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(2))
			h.does(driver.HandOver)
			before := h.get()
			out := s.answers(driver.Superseded, h.key(), attempt(2))
			s.equal("the answer's record", out.Record, before)
			s.unchanged(h.key(), before, "a superseded claim")
		},
	},
	{
		Name: "claim/requeued-runs", Says: "a claim with the attempt of a requeued key, or a higher one, is new at the delivery's attempt and step",
		check: func(s *scene) {
			for _, n := range []uint32{2, 5} {
				first := s.hold(driver.New, s.key())
				first.does(driver.HandOver)
				h := s.hold(driver.New, first.key(), attempt(n), step(3))
				s.want(h.rec.Attempt == n && h.rec.Step == 3, "a delivery of attempt %d, step 3 was granted as attempt %d, step %d", n, h.rec.Attempt, h.rec.Step)
				s.want(h.rec.Takeovers == 0, "a hand-over counted as %d takeovers", h.rec.Takeovers)
			}
		},
	},
	{
		Name: "claim/dead", Says: "a claim on dead(n) with an attempt up to n is dead and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(3))
			h.does(driver.Bury)
			before := h.get()
			for n := uint32(1); n <= 3; n++ {
				s.equal("the answer's record", s.answers(driver.IsDead, h.key(), attempt(n)).Record, before)
			}
			s.unchanged(h.key(), before, "a claim on a dead key")
		},
	},
	{
		Name: "claim/dead-reopens", Says: "a claim on dead(n) with an attempt above n is new, at the replay's attempt and step",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key(), attempt(3), step(3))
			first.does(driver.Bury)
			h := s.hold(driver.New, first.key(), attempt(4))
			s.want(h.rec.Attempt == 4 && h.rec.Step == 0, "granted as attempt %d, step %d", h.rec.Attempt, h.rec.Step)
			s.want(!h.rec.InDoubt, "a death without doubt opened in doubt")
		},
	},
	{
		Name: "claim/conflict", Says: "the fingerprint is compared before anything else: another payload under the same key is a conflict in every state and writes nothing",
		check: func(s *scene) {
			other := payload(1, 99)
			for name, put := range map[string]func(holder){
				"pending": func(holder) {}, "done": func(h holder) { h.does(driver.Seal) },
				"requeued": func(h holder) { h.does(driver.HandOver) }, "dead": func(h holder) { h.does(driver.Bury) },
			} {
				h := s.hold(driver.New, s.key())
				put(h)
				before := h.get()
				out := s.claim(h.key(), other, attempt(9))
				s.want(out.Answer == driver.Conflict, "on %s answered %v", name, out.Answer)
				s.equal("the answer's record", out.Record, before)
				s.unchanged(h.key(), before, "a conflict")
			}
			h := s.lapse(driver.New, s.key())
			s.answers(driver.Conflict, h.key(), other)
		},
	},
	{
		Name: "claim/schemes", Says: "fingerprints of different schemes, or none, are not compared; the record keeps the first one",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), payload(1, 7))
			s.answers(driver.Held, h.key(), payload(2, 8))
			s.answers(driver.Held, h.key(), payload(0, 0))
			h.does(driver.HandOver)
			again := s.hold(driver.New, h.key(), attempt(2), payload(2, 8))
			s.want(again.rec.Fingerprint == h.rec.Fingerprint, "the fingerprint became %v", again.rec.Fingerprint)
			bare := s.hold(driver.New, s.key(), payload(0, 0))
			s.answers(driver.Held, bare.key(), payload(1, 8))
			bare.does(driver.HandOver)
			again = s.hold(driver.New, bare.key(), attempt(2), payload(1, 8))
			s.want(again.rec.Fingerprint.Sum[0] == 8, "a record without fingerprint did not take the claim's")
		},
	},
	{
		Name: "claim/token-grows", Says: "each claim of a key gets a higher token: after a release to absent, a take-over, a hand-over and a death",
		check: func(s *scene) {
			key := s.key()
			last := s.hold(driver.New, key)
			next := func(want driver.Answer, n uint32) {
				h := s.hold(want, key, attempt(n), s.short)
				s.want(h.rec.Token > last.rec.Token, "the token went from %d to %d", last.rec.Token, h.rec.Token)
				last = h
			}
			last.does(driver.Release)
			next(driver.New, 1)
			s.pass()
			next(driver.InDoubt, 1)
			last.does(driver.Release)
			next(driver.InDoubt, 1)
			last.does(driver.HandOver, func(t *driver.Transition) { t.InDoubt = false })
			s.want(s.get(key).Token == last.rec.Token, "requeued does not keep the token")
			next(driver.New, last.rec.Attempt+1)
			last.does(driver.Bury)
			s.want(s.get(key).Token == last.rec.Token, "dead does not keep the token")
			next(driver.New, last.rec.Attempt+1)
		},
	},
}
