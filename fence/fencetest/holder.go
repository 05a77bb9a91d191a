package fencetest

import (
	"crypto/rand"
	"errors"

	"github.com/oncefence/oncefence/fence/driver"
)

func nonce() (n driver.Nonce) {
	_, _ = rand.Read(n[:])
	return n
}

// ask makes a claim as a consumer would send it: first attempt, long lease,
// takeovers allowed. tweaks change it.
func (s *scene) ask(key driver.Digest, tweaks ...func(*driver.Claim)) driver.Claim {
	c := driver.Claim{
		Key: key, Nonce: nonce(), Kind: driver.KindIdempotent, Attempt: 1, Lease: long,
		Fingerprint: driver.Fingerprint{Scheme: 1, Sum: [16]byte{1, 2, 3}},
		Origin:      driver.Origin{Source: "kafka", Topic: "orders", Partition: 3, Offset: 41, Timestamp: 1700000000123},
		// Beyond any clock, and exact as a floating-point number.
		TakeoverUntil: 1 << 52,
	}
	for _, tweak := range tweaks {
		tweak(&c)
	}
	return c
}

func attempt(n uint32) func(*driver.Claim)   { return func(c *driver.Claim) { c.Attempt = n } }
func step(n uint32) func(*driver.Claim)      { return func(c *driver.Claim) { c.Step = n } }
func kind(k driver.Kind) func(*driver.Claim) { return func(c *driver.Claim) { c.Kind = k } }
func inPlace(c *driver.Claim)                { c.InPlace = true }
func payload(scheme, sum byte) func(*driver.Claim) {
	return func(c *driver.Claim) { c.Fingerprint = driver.Fingerprint{Scheme: scheme, Sum: [16]byte{sum}} }
}

// short makes the lease one that pass lets end.
func (s *scene) short(c *driver.Claim) { c.Lease = s.h.Lease }

// claim sends one claim and wants an answer without error.
func (s *scene) claim(key driver.Digest, tweaks ...func(*driver.Claim)) driver.Claimed {
	return s.send(s.ask(key, tweaks...))
}

func (s *scene) send(c driver.Claim) driver.Claimed {
	out := s.claimAll([]driver.Claim{c})[0]
	s.want(out.Err == nil, "the claim failed: %w", out.Err)
	return out
}

// answers sends one claim and wants this answer.
func (s *scene) answers(want driver.Answer, key driver.Digest, tweaks ...func(*driver.Claim)) driver.Claimed {
	out := s.claim(key, tweaks...)
	s.want(out.Answer == want, "the claim was answered %v, want %v", out.Answer, want)
	return out
}

// refuses sends one claim and wants it to fail with this error.
func (s *scene) refuses(want error, c driver.Claim) {
	out := s.claimAll([]driver.Claim{c})[0]
	s.want(errors.Is(out.Err, want), "the claim was answered %v with error %v, want the error %v", out.Answer, out.Err, want)
}

// holder is one granted claim.
type holder struct {
	s     *scene
	asked driver.Claim
	rec   driver.Record
}

// hold sends a claim and wants it granted with this answer.
func (s *scene) hold(want driver.Answer, key driver.Digest, tweaks ...func(*driver.Claim)) holder {
	c := s.ask(key, tweaks...)
	out := s.send(c)
	s.want(out.Answer == want, "the claim was answered %v, want %v", out.Answer, want)
	return holder{s, c, out.Record}
}

// lapse is hold with a lease that has ended when it returns.
func (s *scene) lapse(want driver.Answer, key driver.Digest, tweaks ...func(*driver.Claim)) holder {
	h := s.hold(want, key, append(tweaks, s.short)...)
	s.pass()
	return h
}

// says makes a transition that carries all of the claim, as fence.Fence would.
func (h holder) says(op driver.Op, tweaks ...func(*driver.Transition)) driver.Transition {
	t := transition(op, h.asked.Key, h.asked.Nonce, &h.rec)
	for _, tweak := range tweaks {
		tweak(&t)
	}
	return t
}

func transition(op driver.Op, key driver.Digest, n driver.Nonce, r *driver.Record) driver.Transition {
	t := driver.Transition{
		Op: op, Key: key, Token: r.Token, Attempt: r.Attempt, Step: r.Step, NextAttempt: r.Attempt + 1, NextStep: r.Step + 1,
		Takeovers: r.Takeovers, Lease: long, Retention: long, InDoubt: r.InDoubt, Kind: r.Kind, Fingerprint: r.Fingerprint,
		Origin: r.Origin, FirstSeen: r.FirstSeen, AttemptEnd: r.AttemptEnd, EffectID: "effect-1", Receipt: []byte("receipt"), Reason: "because", Steps: r.Steps,
	}
	switch op {
	case driver.Release:
		t.Nonce = n
	case driver.Retry:
		t.Due, t.Lease = long, 0
	case driver.GiveUp:
		t.Lease = 0
	case driver.HandOver:
		t.Attempt, t.Step = r.Attempt+1, r.Step+1
	}
	return t
}

// does sends one transition and wants this outcome.
func (s *scene) does(want driver.Outcome, t driver.Transition) driver.Applied {
	out := s.applyAll([]driver.Transition{t})[0]
	s.want(out.Err == nil, "%v failed: %w", t.Op, out.Err)
	s.want(out.Outcome == want, "%v was answered %v, want %v", t.Op, out.Outcome, want)
	return out
}

// does sends one transition of the holder and wants it written.
func (h holder) does(op driver.Op, tweaks ...func(*driver.Transition)) driver.Applied {
	return h.s.does(driver.OK, h.says(op, tweaks...))
}

func (h holder) key() driver.Digest { return h.asked.Key }

func (h holder) get() driver.Record { return h.s.get(h.asked.Key) }
