package fencetest

import (
	"github.com/oncefence/oncefence/fence/driver"
)

// sealed is what a seal leaves.
func sealed(t driver.Transition, now int64) driver.Record {
	return driver.Record{
		State: driver.Done, Kind: t.Kind, Token: t.Token, Attempt: t.Attempt, Fingerprint: t.Fingerprint, Origin: t.Origin,
		FirstSeen: t.FirstSeen, SealedAt: now, Expire: now + t.Retention.Microseconds(), EffectID: t.EffectID, Receipt: t.Receipt,
	}
}

// sealRules: an applied effect is a fact.
var sealRules = []Rule{
	{
		Name: "seal/written", Says: "a seal by the holder makes the record done, with all that done keeps and nothing else",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(2), step(1))
			h.does(driver.Retry)
			t := h.says(driver.Seal)
			out := s.does(driver.OK, t)
			s.equal("after seal", h.get(), sealed(t, out.Now))
		},
	},
	{
		Name: "seal/ended-lease", Says: "a seal is accepted after the lease ended while the token is still the record's, in doubt too",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key())
			h := s.lapse(driver.InDoubt, first.key())
			h.does(driver.Seal)
			s.want(!h.get().InDoubt, "done carries doubt")
		},
	},
	{
		Name: "seal/repeated", Says: "a seal sent again with the record's own token is answered repeated and writes nothing",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Seal)
			before := h.get()
			s.equal("the answer's record", s.does(driver.Repeated, h.says(driver.Seal)).Record, before)
			s.unchanged(h.key(), before, "the same seal again")
		},
	},
	{
		Name: "seal/second-refused", Says: "a seal on a sealed key with another token, or with another receipt or effect id, is refused and shows the record",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Seal)
			before := h.get()
			for _, tweak := range []func(*driver.Transition){
				stranger,
				func(t *driver.Transition) { t.EffectID = "effect-2" },
				func(t *driver.Transition) { t.Receipt = []byte("other") },
			} {
				s.equal("the answer's record", s.does(driver.Refused, h.says(driver.Seal, tweak)).Record, before)
			}
			s.unchanged(h.key(), before, "second seals")
		},
	},
	{
		Name: "seal/stale", Says: "a seal over another holder's pending is refused, shows that holder's record and writes nothing: a token is compared at every transition",
		check: func(s *scene) {
			first := s.lapse(driver.New, s.key())
			h := s.hold(driver.InDoubt, first.key())
			s.equal("the answer's record", s.does(driver.Refused, first.says(driver.Seal)).Record, h.rec)
			s.unchanged(h.key(), h.rec, "a late seal")
		},
	},
	{
		Name: "seal/vanished", Says: "a seal that finds no record writes done all the same and says vanished; sent again it is repeated",
		check: func(s *scene) {
			h := s.absent()
			t := h.says(driver.Seal)
			out := s.does(driver.Vanished, t)
			s.equal("after seal", h.get(), sealed(t, out.Now))
			s.does(driver.Repeated, t)
			s.answers(driver.Duplicate, h.key())
			released := s.hold(driver.New, s.key())
			released.does(driver.Release)
			t = released.says(driver.Seal)
			out = s.does(driver.Vanished, t)
			s.equal("after seal on a released key", released.get(), sealed(t, out.Now))
		},
	},
	{
		Name: "seal/late", Says: "a seal that finds the key requeued or dead, by whatever token, writes done all the same, says late and shows what it found",
		check: func(s *scene) {
			for op := range endOps {
				for _, tweak := range []func(*driver.Transition){func(*driver.Transition) {}, stranger} {
					h := s.hold(driver.New, s.key())
					h.does(op, doubtful)
					before := h.get()
					t := h.says(driver.Seal, tweak)
					out := s.does(driver.Late, t)
					s.equal("the answer's record", out.Record, before)
					s.equal("after seal", h.get(), sealed(t, out.Now))
					s.does(driver.Repeated, t)
					s.answers(driver.Duplicate, h.key(), attempt(9))
				}
			}
		},
	},
	{
		Name: "seal/terminal", Says: "done is terminal: no transition changes it, by whatever token",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Seal)
			before := h.get()
			for op := driver.Renew; op <= driver.Resolve; op++ {
				for _, tweak := range []func(*driver.Transition){func(*driver.Transition) {}, stranger} {
					out := s.applyAll([]driver.Transition{h.says(op, tweak, func(t *driver.Transition) { t.Attempt = 9 })})[0]
					s.want(out.Err == nil && (out.Outcome == driver.Refused || out.Outcome == driver.Repeated), "%v was answered %v, error %v", op, out.Outcome, out.Err)
					s.unchanged(h.key(), before, op.String())
				}
			}
		},
	},
}

// resolveRules: a person ends a doubt.
var resolveRules = []Rule{
	{
		Name: "resolve/applied", Says: "resolve as applied makes a key that died in doubt done, with the sink's id and the record's own kind, token, attempt, fingerprint, origin and first seen; again it is repeated",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(2))
			h.does(driver.Bury, doubtful)
			dead := h.get()
			t := driver.Transition{Op: driver.Resolve, Key: h.key(), Token: dead.Token, Applied: true, EffectID: "charge 17", Receipt: []byte("by hand"), Retention: long}
			out := s.does(driver.OK, t)
			s.equal("after resolve", h.get(), driver.Record{
				State: driver.Done, Kind: dead.Kind, Token: dead.Token, Attempt: dead.Attempt, Fingerprint: dead.Fingerprint, Origin: dead.Origin,
				FirstSeen: dead.FirstSeen, SealedAt: out.Now, Expire: out.Now + long.Microseconds(), EffectID: "charge 17", Receipt: []byte("by hand"),
			})
			s.does(driver.Repeated, t)
			s.answers(driver.Duplicate, h.key(), attempt(9))
		},
	},
	{
		Name: "resolve/not-applied", Says: "resolve as not applied leaves the key dead without doubt, with the new reason and retention; again it is repeated; a replay then is new",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key(), attempt(2))
			h.does(driver.Bury, doubtful)
			want := h.get()
			t := driver.Transition{Op: driver.Resolve, Key: h.key(), Token: want.Token, Reason: "asked the bank", Retention: 2 * long}
			out := s.does(driver.OK, t)
			want.InDoubt, want.Reason, want.Expire = false, "asked the bank", out.Now+2*long.Microseconds()
			s.equal("after resolve", h.get(), want)
			s.does(driver.Repeated, t)
			s.equal("after resolve again", h.get(), want)
			s.answers(driver.New, h.key(), attempt(3))
		},
	},
	{
		Name: "resolve/refused", Says: "resolve with another token, on a key that is absent, pending or requeued, and as applied on a key that died without doubt, is refused and writes nothing",
		check: func(s *scene) {
			both := func(h holder, tweaks ...func(*driver.Transition)) {
				before := h.get()
				for _, applied := range []bool{true, false} {
					s.does(driver.Refused, h.says(driver.Resolve, append(tweaks, func(t *driver.Transition) { t.Applied = applied })...))
				}
				s.unchanged(h.key(), before, "refused resolves")
			}
			both(s.absent())
			h := s.lapse(driver.New, s.key())
			both(h)
			h.does(driver.HandOver, doubtful)
			both(h)
			h = s.hold(driver.New, s.key())
			h.does(driver.Bury, doubtful)
			both(h, stranger)
			h = s.hold(driver.New, s.key())
			h.does(driver.Bury)
			s.does(driver.Refused, h.says(driver.Resolve, func(t *driver.Transition) { t.Applied = true }))
		},
	},
}
