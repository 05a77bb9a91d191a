package fencetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oncefence/oncefence/fence/driver"
)

// matrixRules: every operation on every situation, against the driver's Decide.
var matrixRules = func() []Rule {
	var out []Rule
	for _, sit := range situations {
		out = append(out, Rule{
			Name: "matrix/" + sit.name, Says: "each claim and each transition on a key that is " + sit.says + " is answered, and leaves the record, as driver's Decide says",
			check: func(s *scene) { s.matrix(sit) },
		})
	}
	return out
}()

func (s *scene) matrix(sit situation) {
	n := len(claimTrials) + len(transitionTrials)
	keys, holders := s.bring(sit, n)
	var claims []driver.Claim
	var transitions []driver.Transition
	for i, key := range keys {
		last := s.lastHolder(key, holders[i])
		if i < len(claimTrials) {
			claims = append(claims, claimTrials[i].make(s, last))
		} else {
			transitions = append(transitions, transitionTrials[i-len(claimTrials)].make(last, holders[i]))
		}
	}
	before := s.getAll(keys)
	for i := range before { // get need not tell what a tombstone holds
		if len(holders[i]) > 0 && before[i].State == driver.Absent && sit.name == "released" {
			before[i] = driver.Record{Expire: 1 << 52, Released: holders[i][0].asked.Nonce, ReleasedToken: holders[i][0].rec.Token}
		}
	}
	claimed, applied := s.claimAll(claims), s.applyAll(transitions)
	after := s.getAll(keys)
	for i, c := range claimed {
		s.judgeClaim(claimTrials[i].name, claims[i], before[i], c, after[i])
	}
	for i, a := range applied {
		k := i + len(claimTrials)
		s.judgeTransition(transitionTrials[i].name, transitions[i], before[k], a, after[k])
	}
}

// lastHolder is the one whose record stands, or a stranger on an absent key.
func (s *scene) lastHolder(key driver.Digest, all []holder) holder {
	if len(all) > 0 {
		return all[0]
	}
	h := s.absent()
	h.asked.Key = key
	return h
}

func (s *scene) judgeClaim(name string, c driver.Claim, before driver.Record, got driver.Claimed, after driver.Record) {
	found := &before
	if before.State == driver.Absent && before.Released == (driver.Nonce{}) {
		found = nil
	}
	next, want := c.Decide(found, got.Now, func(prev uint64) uint64 {
		s.want(got.Record.Token > prev, "%s: the token %d is not above %d", name, got.Record.Token, prev)
		return got.Record.Token
	})
	s.want(want.Err == nil && got.Err == nil || want.Err != nil && errors.Is(got.Err, want.Err), "%s: error %v, want %v", name, got.Err, want.Err)
	s.want(got.Answer == want.Answer, "%s: answered %v, want %v", name, got.Answer, want.Answer)
	s.want(got.Left == want.Left, "%s: %v left, want %v", name, got.Left, want.Left)
	if want.Err == nil {
		s.equal(name+": the answer's record", got.Record, want.Record)
	}
	s.left(name, found, next, after)
}

func (s *scene) judgeTransition(name string, t driver.Transition, before driver.Record, got driver.Applied, after driver.Record) {
	found := &before
	if before.State == driver.Absent && before.Released == (driver.Nonce{}) {
		found = nil
	}
	s.want(got.Err == nil, "%s: failed: %w", name, got.Err)
	next, want := t.Decide(found, got.Now)
	s.want(got.Outcome == want.Outcome, "%s: answered %v, want %v", name, got.Outcome, want.Outcome)
	s.equal(name+": the answer's record", got.Record, want.Record)
	s.left(name, found, next, after)
}

// left wants the stored record to be next, or what was found if nothing was
// to be written.
func (s *scene) left(name string, found, next *driver.Record, after driver.Record) {
	switch {
	case next != nil:
		s.equal(name+": the stored record", after, *next)
	case found != nil:
		s.equal(name+": the stored record, which must not change", after, *found)
	default:
		s.want(after.State == driver.Absent, "%s: a record came to be: %v", name, after.State)
	}
}

type claimTrial struct {
	name   string
	tweaks []func(*driver.Claim)
	again  bool // with the last holder's nonce
}

func (t claimTrial) make(s *scene, last holder) driver.Claim {
	if t.again {
		return last.asked
	}
	return s.ask(last.key(), t.tweaks...)
}

var claimTrials = func() []claimTrial {
	type tweak = func(*driver.Claim)
	out := []claimTrial{
		{name: "the last claim sent again", again: true},
		{name: "a claim with another payload", tweaks: []tweak{payload(1, 99)}},
		{name: "a claim with a payload of another scheme", tweaks: []tweak{payload(2, 99)}},
		{name: "a claim without payload", tweaks: []tweak{payload(0, 0)}},
		{name: "a claim that comes too late", tweaks: []tweak{func(c *driver.Claim) { c.NotAfter = 1 }}},
		{name: "a claim that may not take over", tweaks: []tweak{func(c *driver.Claim) { c.TakeoverUntil = 0 }}},
	}
	for _, n := range []uint32{1, 2, 3, 9} {
		for _, k := range []driver.Kind{driver.KindIdempotent, driver.KindProbed, driver.KindAtMostOnce, driver.KindTransactional} {
			for _, where := range []struct {
				name  string
				tweak tweak
			}{{"", func(*driver.Claim) {}}, {" in place", inPlace}} {
				out = append(out, claimTrial{fmt.Sprintf("a claim of attempt %d, %v%s", n, k, where.name), []tweak{attempt(n), step(n + 10), kind(k), where.tweak}, false})
			}
		}
	}
	return out
}()

type transitionTrial struct {
	name   string
	op     driver.Op
	tweaks []func(*driver.Transition)
	former bool // by the holder before the last one, if there was one
}

func (t transitionTrial) make(last holder, all []holder) driver.Transition {
	if t.former && len(all) > 1 {
		last = all[1]
	}
	return last.says(t.op, t.tweaks...)
}

var transitionTrials = func() []transitionTrial {
	type tweak = func(*driver.Transition)
	variants := []struct {
		name   string
		tweaks []tweak
		former bool
	}{
		{"by the holder", nil, false},
		{"by the former holder", nil, true},
		{"by a stranger", []tweak{stranger, func(t *driver.Transition) { t.Nonce[3] ^= 0x55 }}, false},
		{"with doubt, without retention", []tweak{doubtful, func(t *driver.Transition) { t.Retention = 0 }}, false},
		{"of attempt 1", []tweak{func(t *driver.Transition) { t.Attempt, t.NextAttempt = 1, 2 }}, false},
		{"of attempt 2", []tweak{func(t *driver.Transition) { t.Attempt, t.NextAttempt = 2, 3 }}, false},
		{"of attempt 9", []tweak{func(t *driver.Transition) { t.Attempt, t.NextAttempt = 9, 10 }}, false},
		{"as applied", []tweak{func(t *driver.Transition) { t.Applied = true }}, false},
		{"with a step, another id and a longer lease", []tweak{func(t *driver.Transition) { t.EffectID, t.Lease, t.Steps = "effect-2", 2*long, twoSteps }}, false},
		{"without token", []tweak{token(0)}, false},
	}
	var out []transitionTrial
	for op := driver.Renew; op <= driver.Resolve; op++ {
		for _, v := range variants {
			out = append(out, transitionTrial{op.String() + " " + v.name, op, slices.Clone(v.tweaks), v.former})
		}
	}
	return out
}()

var twoSteps = []driver.Step{{Name: "a", Kind: driver.KindProbed, Receipt: []byte("x")}, {Name: "b"}}
