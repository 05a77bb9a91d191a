package fencetest

import (
	"slices"

	"github.com/oncefence/oncefence/fence/driver"
)

// situation is a way to bring keys into a state. Its moves run as batches over
// all keys at once: a nil move lets a lease or retention of the harness end.
type situation struct {
	name string
	says string
	via  []move
}

// move is one batch: a claim, or a transition by the holder of the last granted
// claim (back = 0) or of the one before it.
type move struct {
	claim func(*driver.Claim)
	op    driver.Op
	back  int
	tweak func(*scene, *driver.Transition)
	pass  bool
}

func claiming(tweaks ...func(*driver.Claim)) move {
	return move{claim: func(c *driver.Claim) {
		for _, tweak := range tweaks {
			tweak(c)
		}
	}}
}

// lapsing claims under a lease that the next pass ends.
func lapsing(tweaks ...func(*driver.Claim)) move {
	return claiming(append(slices.Clone(tweaks), func(c *driver.Claim) { c.Lease = 0 })...)
}

func doing(op driver.Op, tweaks ...func(*driver.Transition)) move {
	return move{op: op, tweak: func(_ *scene, t *driver.Transition) {
		for _, tweak := range tweaks {
			tweak(t)
		}
	}}
}

func expiring(op driver.Op, tweaks ...func(*driver.Transition)) move {
	m := doing(op, tweaks...)
	inner := m.tweak
	m.tweak = func(s *scene, t *driver.Transition) { inner(s, t); s.brief(t) }
	return m
}

var (
	passing    = move{pass: true}
	releasing  = move{op: driver.Release}
	retryDue   = move{op: driver.Retry, tweak: func(s *scene, t *driver.Transition) { s.due(t) }}
	retryDoubt = move{op: driver.Retry, tweak: func(s *scene, t *driver.Transition) { s.due(t); t.InDoubt = true }}
	oneStep    = func(t *driver.Transition) {
		t.Steps = []driver.Step{{Name: "a", Kind: driver.KindProbed, Receipt: []byte("x")}}
	}
	atMostOnce  = kind(driver.KindAtMostOnce)
	transaction = kind(driver.KindTransactional)
)

var situations = []situation{
	{"absent", "without a record", nil},
	{"released", "released to absent", []move{claiming(), releasing}},
	{"held", "pending under a living lease", []move{claiming(attempt(2), step(1))}},
	{"lapsed", "pending under a lease that ended", []move{lapsing(attempt(2), step(1)), passing}},
	{"lapsed-transactional", "pending, transactional, under a lease that ended", []move{lapsing(transaction), passing}},
	{"lapsed-with-steps", "pending with kept steps under a lease that ended", []move{lapsing(), doing(driver.Keep, oneStep), passing}},
	{"in-doubt", "taken over and in doubt", []move{lapsing(attempt(2)), passing, claiming()}},
	{"in-doubt-lapsed", "taken over, in doubt, under a lease that ended too", []move{lapsing(atMostOnce), passing, lapsing(), passing}},
	{"retry-held", "retry under a living lease", []move{claiming(), doing(driver.Retry)}},
	{"retry-waiting", "retry before its due time under a lease that ended", []move{lapsing(), doing(driver.Retry), passing}},
	{"retry-due", "retry after its due time", []move{lapsing(), retryDue, passing}},
	{"retry-due-in-doubt", "retry in doubt after its due time", []move{lapsing(), retryDoubt, passing}},
	{"requeuing", "taken over to produce the copy again", []move{lapsing(), doing(driver.Retry), passing, claiming()}},
	{"gave-up", "give_up under a lease that ended", []move{lapsing(attempt(2)), doing(driver.GiveUp), passing}},
	{"gave-up-in-doubt", "give_up in doubt under a lease that ended", []move{lapsing(atMostOnce), doing(driver.GiveUp, doubtful), passing}},
	{"begun", "in its second attempt in place", []move{claiming(), doing(driver.Retry), doing(driver.Begin)}},
	{"requeued", "requeued", []move{claiming(attempt(2)), doing(driver.HandOver)}},
	{"requeued-in-doubt", "requeued in doubt", []move{claiming(), doing(driver.HandOver, doubtful, oneStep)}},
	{"dead", "dead", []move{claiming(attempt(2)), doing(driver.Bury)}},
	{"dead-in-doubt", "dead in doubt", []move{claiming(attempt(2)), doing(driver.Bury, doubtful)}},
	{"dead-at-most-once", "dead in doubt under at-most-once", []move{claiming(atMostOnce), doing(driver.Bury, doubtful)}},
	{"resolved", "dead, resolved as not applied", []move{claiming(), doing(driver.Bury, doubtful), doing(driver.Resolve)}},
	{"done", "done", []move{claiming(), doing(driver.Seal)}},
	{"put-back", "pending again after its successor's release", []move{claiming(), doing(driver.HandOver), lapsing(attempt(2)), passing, claiming(attempt(2)), releasing}},
	{"put-back-first", "pending again, a first claim, after its successor's release", []move{lapsing(), passing, claiming(), releasing}},
	{"put-back-requeued", "requeued again after a release", []move{claiming(), doing(driver.HandOver), claiming(attempt(2)), releasing}},
	{"put-back-dead", "dead again after a release", []move{claiming(), doing(driver.Bury), claiming(attempt(2)), releasing}},
	{"expired-done", "done and over its retention", []move{claiming(), expiring(driver.Seal), passing}},
	{"expired-requeued", "requeued and over its retention", []move{claiming(), expiring(driver.HandOver, certain), passing}},
	{"overdue-dead-in-doubt", "dead in doubt and over its retention", []move{claiming(), expiring(driver.Bury, doubtful), passing}},
}

// bring makes n keys in the situation and answers all their granted claims,
// the last first.
func (s *scene) bring(sit situation, n int) (keys []driver.Digest, holders [][]holder) {
	keys, holders = s.keys(n), make([][]holder, n)
	for _, m := range sit.via {
		switch {
		case m.pass:
			s.pass()
		case m.claim != nil:
			claims := make([]driver.Claim, n)
			for i := range claims {
				claims[i] = s.ask(keys[i], m.claim)
				if claims[i].Lease == 0 {
					s.short(&claims[i])
				}
			}
			for i, c := range s.claimAll(claims) {
				s.want(c.Err == nil && c.Answer.Granted(), "on the way to a key that is %s a claim was answered %v, error %v", sit.says, c.Answer, c.Err)
				holders[i] = slices.Insert(holders[i], 0, holder{s, claims[i], c.Record})
			}
		default:
			transitions := make([]driver.Transition, n)
			for i := range transitions {
				transitions[i] = holders[i][m.back].says(m.op)
				if m.tweak != nil {
					m.tweak(s, &transitions[i])
				}
			}
			for i, a := range s.applyAll(transitions) {
				s.want(a.Err == nil && a.Outcome == driver.OK, "on the way to a key that is %s %v was answered %v, error %v", sit.says, transitions[i].Op, a.Outcome, a.Err)
			}
		}
	}
	return keys, holders
}
