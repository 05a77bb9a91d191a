package fencetest

import (
	"crypto/sha256"

	"github.com/oncefence/oncefence/fence/driver"
)

func token(n uint64) func(*driver.Transition) {
	return func(t *driver.Transition) { t.Token = n }
}

// stranger is a token that is not the holder's.
func stranger(t *driver.Transition) { t.Token++ }

// holdRules: renewals.
var holdRules = []Rule{
	{
		Name: "renew/moves-lease", Says: "a renewal moves the lease end to now plus the lease and nothing else",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), s.short)
			out := h.does(driver.Renew)
			want := h.rec
			want.LeaseEnd = out.Now + long.Microseconds()
			s.equal("the stored record", h.get(), want)
			s.pass()
			s.answers(driver.Held, h.key())
		},
	},
	{
		Name: "renew/ended-lease", Says: "an ended lease may be renewed while the token is still the record's, and holds again",
		check: func(s *scene) {
			h := s.lapse(driver.New, s.key())
			h.does(driver.Renew)
			s.answers(driver.Held, h.key())
			lost := s.lapse(driver.New, s.key())
			now := s.hold(driver.InDoubt, lost.key())
			s.does(driver.Refused, lost.says(driver.Renew))
			s.unchanged(now.key(), now.rec, "a renewal by a former holder")
		},
	},
	{
		Name: "renew/refused", Says: "a renewal with another token, or of a key that is not pending, is refused, shows the record and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			s.equal("the answer's record", s.does(driver.Refused, h.says(driver.Renew, stranger)).Record, h.rec)
			s.unchanged(h.key(), h.rec, "a stranger's renewal")
			h.does(driver.Seal)
			before := h.get()
			s.equal("the answer's record", s.does(driver.Refused, h.says(driver.Renew)).Record, before)
			s.unchanged(h.key(), before, "a renewal of a sealed key")
			s.does(driver.Refused, s.absent().says(driver.Renew))
		},
	},
	{
		Name: "apply/unknown", Says: "a transition without a name is refused, or fails, and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			for _, op := range []driver.Op{driver.NoOp, 200} {
				out := s.applyAll([]driver.Transition{h.says(op)})[0]
				s.want(out.Err != nil || out.Outcome == driver.Refused, "op %d was answered %v", op, out.Outcome)
				s.unchanged(h.key(), h.rec, "a transition without a name")
			}
		},
	},
}

// absent makes a holder of a key that was never claimed.
func (s *scene) absent() holder {
	c := s.ask(s.key())
	sum := sha256.Sum256(c.Key[:])
	rec := driver.Record{Kind: c.Kind, Token: 1 + uint64(sum[0]), Attempt: 1, Fingerprint: c.Fingerprint, Origin: c.Origin, FirstSeen: s.now()}
	return holder{s, c, rec}
}

// releaseRules: release puts back what the claim found.
var releaseRules = []Rule{
	{
		Name: "release/to-absent", Says: "a release of a first claim makes the key absent again, open to a new claim",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Release)
			s.want(h.get().State == driver.Absent, "the key is %v", h.get().State)
			again := s.hold(driver.New, h.key())
			s.want(again.rec.Prior == nil && again.rec.Takeovers == 0 && !again.rec.InDoubt, "the released claim left a trace in the next one")
			s.want(again.rec.Token > h.rec.Token, "the token went from %d to %d", h.rec.Token, again.rec.Token)
		},
	},
	{
		Name: "release/exact", Says: "a release puts back exactly what the claim found: state, token, attempt, step, doubt, verdict, due time, takeovers, steps, reason and expiry",
		check: func(s *scene) {
			steps := func(t *driver.Transition) {
				t.Steps = []driver.Step{{Name: "reserve", Kind: driver.KindProbed, Receipt: []byte("r1")}}
			}
			puts := map[string]struct {
				put  func(holder)
				want driver.Answer
			}{
				"pending without verdict": {func(h holder) { h.does(driver.Keep, steps) }, driver.InDoubt},
				"retry with doubt":        {func(h holder) { h.does(driver.Retry, doubtful) }, driver.Requeuing},
				"give_up":                 {func(h holder) { h.does(driver.GiveUp) }, driver.GivingUp},
				"requeued":                {func(h holder) { h.does(driver.HandOver, certain, steps) }, driver.New},
				"requeued with doubt":     {func(h holder) { h.does(driver.HandOver, doubtful) }, driver.InDoubt},
				"dead":                    {func(h holder) { h.does(driver.Bury, certain, steps) }, driver.New},
				"dead in doubt":           {func(h holder) { h.does(driver.Bury, doubtful) }, driver.InDoubt},
			}
			for name, p := range puts {
				first := s.lapse(driver.New, s.key(), s.short)
				h := s.hold(driver.InDoubt, first.key(), attempt(4), step(2), s.short)
				p.put(h)
				s.pass()
				before := h.get()
				next := uint32(4)
				if before.State != driver.Pending {
					next = before.Attempt + 1
				}
				claimed := s.hold(p.want, h.key(), attempt(next))
				claimed.does(driver.Release)
				got := claimed.get()
				got.Released, got.ReleasedToken, got.Prior, before.Prior = driver.Nonce{}, 0, nil, nil
				before.Released, before.ReleasedToken = driver.Nonce{}, 0
				got.PriorLost, before.PriorLost = false, false
				s.equal("released onto "+name, got, before)
			}
		},
	},
	{
		Name: "release/expiry", Says: "a release onto a record that has a retention does not lengthen it",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key())
			first.does(driver.HandOver, func(t *driver.Transition) { t.Retention = s.h.Lease })
			// On a store that is slow enough the record is gone before the claim.
			h := holder{s: s, asked: s.ask(first.key(), attempt(2))}
			h.rec = s.send(h.asked).Record
			h.does(driver.Release)
			s.pass()
			s.want(h.get().State == driver.Absent, "the key is %v after its retention", h.get().State)
		},
	},
	{
		Name: "release/nonce", Says: "a release compares the nonce, and the token if it has one; otherwise it is refused and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			s.does(driver.Refused, h.says(driver.Release, func(t *driver.Transition) { t.Nonce[0]++ }))
			s.equal("the answer's record", s.does(driver.Refused, h.says(driver.Release, stranger)).Record, h.rec)
			s.unchanged(h.key(), h.rec, "a stranger's release")
			s.does(driver.OK, h.says(driver.Release, token(0)))
			s.want(h.get().State == driver.Absent, "a release without token left the key %v", h.get().State)
			s.does(driver.Refused, s.absent().says(driver.Release))
		},
	},
	{
		Name: "release/repeated", Says: "a release sent again is answered repeated and writes nothing, also onto a record that was put back",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Release)
			s.does(driver.Repeated, h.says(driver.Release))
			first := s.lapse(driver.New, s.key())
			h = s.hold(driver.InDoubt, first.key())
			h.does(driver.Release)
			before := h.get()
			s.does(driver.Repeated, h.says(driver.Release))
			s.unchanged(h.key(), before, "a release sent again")
			again := s.hold(driver.InDoubt, first.key())
			s.does(driver.Refused, h.says(driver.Release))
			s.unchanged(h.key(), again.rec, "an old release on a new holder")
		},
	},
	{
		Name: "release/prior-lost", Says: "a claim that was put back without the record that it had found cannot be released: it is refused",
		check: func(s *scene) {
			first := s.hold(driver.New, s.key())
			first.does(driver.HandOver)
			second := s.lapse(driver.New, first.key(), attempt(2))
			third := s.hold(driver.InDoubt, first.key(), attempt(2))
			third.does(driver.Release)
			before := third.get()
			s.want(before.PriorLost, "the record that was put back does not say that its own prior is lost")
			s.does(driver.Refused, second.says(driver.Release))
			s.unchanged(first.key(), before, "the refused release")
		},
	},
	{
		Name: "release/put-back-alone", Says: "a first claim that was put back by its successor's release can be released too; the next token is above both",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key())
			second := s.hold(driver.InDoubt, first.key())
			second.does(driver.Release)
			first.does(driver.Release)
			s.want(first.get().State == driver.Absent, "the key is %v", first.get().State)
			third := s.hold(driver.New, first.key())
			s.want(third.rec.Token > second.rec.Token, "the token %d follows %d", third.rec.Token, second.rec.Token)
		},
	},
	{
		Name: "release/token-carried", Says: "what a release left behind stays when the record is handed over or buried: the next token is above the released one",
		check: func(s *scene) {
			for _, op := range []driver.Op{driver.HandOver, driver.Bury} {
				first := s.lapse(driver.New, s.key())
				second := s.hold(driver.InDoubt, first.key())
				second.does(driver.Release)
				first.does(op)
				third := s.hold(driver.New, first.key(), attempt(2))
				s.want(third.rec.Token > second.rec.Token, "after %v the token %d follows %d", op, third.rec.Token, second.rec.Token)
			}
		},
	},
}
