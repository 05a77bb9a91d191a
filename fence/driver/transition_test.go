package driver_test

import (
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// holders is what the holder of pending() would send.
func holders(op driver.Op, changes ...func(t *driver.Transition)) driver.Transition {
	tr := driver.Transition{
		Op: op, Token: 10, Attempt: 2, Step: 1, NextAttempt: 3, NextStep: 2, Takeovers: 1, Due: time.Minute, Retention: time.Hour, Kind: driver.KindProbed,
		Fingerprint: driver.Fingerprint{Scheme: 1}, Origin: driver.Origin{Topic: "orders"}, FirstSeen: 5, AttemptEnd: 6, EffectID: "e1", Receipt: []byte("r"), Reason: "why", Steps: []driver.Step{{Name: "a"}},
	}
	if op == driver.Release {
		tr.Nonce = driver.Nonce{9}
	}
	if op == driver.Renew || op == driver.Begin {
		tr.Lease = time.Second
	}
	for _, change := range changes {
		change(&tr)
	}
	return tr
}

func stranger(t *driver.Transition)  { t.Token, t.Nonce = 11, driver.Nonce{8} }
func asApplied(t *driver.Transition) { t.Applied = true }
func ofAttempt(n uint32) func(*driver.Transition) {
	return func(t *driver.Transition) { t.Attempt = n }
}

func TestTransitionDecides(t *testing.T) {
	tombstone := &driver.Record{Released: driver.Nonce{9}, ReleasedToken: 10, Expire: now + 1}
	sealed := pending(state(driver.Done), func(r *driver.Record) { r.EffectID, r.Receipt = "e1", []byte("r") })
	begun := func(r *driver.Record) { r.Attempt = 3 }
	two := func(r *driver.Record) { r.Steps = []driver.Step{{Name: "a"}, {Name: "b"}} }
	is := func(s driver.State) func(*driver.Record) bool {
		return func(r *driver.Record) bool { return r.State == s }
	}
	for _, c := range []struct {
		name  string
		found *driver.Record
		say   driver.Transition
		want  driver.Outcome
		wrote func(r *driver.Record) bool // nil: nothing may be written
	}{
		{"renew", pending(), holders(driver.Renew), driver.OK, func(r *driver.Record) bool { return r.LeaseEnd == now+1_000_000 }},
		{"renew, stranger", pending(), holders(driver.Renew, stranger), driver.Refused, nil},
		{"renew, nothing there", nil, holders(driver.Renew), driver.Refused, nil},
		{"renew, done", sealed, holders(driver.Renew), driver.Refused, nil},

		{"release, first", pending(), holders(driver.Release), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Absent && r.Released == driver.Nonce{9} && r.ReleasedToken == 10 && r.Expire == now+driver.TombstoneLife.Microseconds()
		}},
		{"release, over requeued", pending(func(r *driver.Record) { r.Prior = pending(state(driver.Requeued), doubt, expires(now+9)) }), holders(driver.Release), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Requeued && r.InDoubt && r.Expire == now+9 && r.Token == 10 && r.ReleasedToken == 10
		}},
		{"release, no token", pending(), holders(driver.Release, func(t *driver.Transition) { t.Token = 0 }), driver.OK, is(driver.Absent)},
		{"release, other token", pending(), holders(driver.Release, func(t *driver.Transition) { t.Token = 11 }), driver.Refused, nil},
		{"release, other nonce", pending(), holders(driver.Release, func(t *driver.Transition) { t.Nonce[0]++ }), driver.Refused, nil},
		{"release, prior lost", pending(func(r *driver.Record) { r.PriorLost = true }), holders(driver.Release), driver.Refused, nil},
		{"release, again", tombstone, holders(driver.Release), driver.Repeated, nil},
		{"release, again onto a record", pending(func(r *driver.Record) { r.Nonce, r.Released = driver.Nonce{7}, driver.Nonce{9} }), holders(driver.Release), driver.Repeated, nil},
		{"release, keeps the higher token", pending(func(r *driver.Record) { r.ReleasedToken = 15 }), holders(driver.Release), driver.OK, func(r *driver.Record) bool { return r.ReleasedToken == 15 }},

		{"retry", pending(), holders(driver.Retry), driver.OK, func(r *driver.Record) bool {
			return r.Verdict == driver.VerdictRetry && r.NextAttempt == 3 && r.NextStep == 2 && r.Due == now+60_000_000 && r.AttemptEnd == now && r.LeaseEnd == now-1 && r.Reason == "why"
		}},
		{"retry with a lease", pending(), holders(driver.Retry, func(t *driver.Transition) { t.Lease = time.Second }), driver.OK, func(r *driver.Record) bool { return r.LeaseEnd == now+1_000_000 }},
		{"retry, stranger", pending(), holders(driver.Retry, stranger), driver.Refused, nil},
		{"retry of the attempt before", pending(begun), holders(driver.Retry), driver.Refused, nil},
		{"retry, again", pending(retry(1)), holders(driver.Retry, func(t *driver.Transition) { t.NextAttempt = 5 }), driver.Repeated, nil},
		{"retry, again with doubt", pending(retry(1)), holders(driver.Retry, func(t *driver.Transition) { t.NextAttempt, t.InDoubt = 5, true }), driver.OK, func(r *driver.Record) bool { return r.InDoubt }},
		{"retry after give_up", pending(gaveUp), holders(driver.Retry), driver.Refused, nil},
		{"give_up", pending(), holders(driver.GiveUp, func(t *driver.Transition) { t.InDoubt = true }), driver.OK, func(r *driver.Record) bool {
			return r.Verdict == driver.VerdictGiveUp && r.InDoubt && r.NextAttempt == 0 && r.Due == 0 && r.AttemptEnd == now
		}},
		{"give_up after retry", pending(retry(1)), holders(driver.GiveUp), driver.OK, func(r *driver.Record) bool {
			return r.Verdict == driver.VerdictGiveUp && r.NextAttempt == 0 && r.Due == 0
		}},
		{"give_up, again", pending(gaveUp), holders(driver.GiveUp), driver.Repeated, nil},

		{"begin", pending(retry(1)), holders(driver.Begin), driver.OK, func(r *driver.Record) bool {
			return r.Attempt == 3 && r.Step == 2 && r.Verdict == driver.NoVerdict && r.NextAttempt == 0 && r.Due == 0 && r.LeaseEnd == now+1_000_000 && r.Token == 10
		}},
		{"begin keeps doubt", pending(retry(1), doubt), holders(driver.Begin), driver.OK, func(r *driver.Record) bool { return r.InDoubt }},
		{"begin, no verdict", pending(), holders(driver.Begin), driver.Refused, nil},
		{"begin after give_up", pending(gaveUp), holders(driver.Begin), driver.Refused, nil},
		{"begin, again", pending(begun), holders(driver.Begin), driver.Repeated, nil},
		{"begin, long ago", pending(begun, retry(1)), holders(driver.Begin), driver.Refused, nil},

		{"keep", pending(), holders(driver.Keep), driver.OK, func(r *driver.Record) bool { return len(r.Steps) == 1 }},
		{"keep, fewer", pending(two), holders(driver.Keep), driver.Repeated, nil},
		{"keep, stranger", pending(), holders(driver.Keep, stranger), driver.Refused, nil},

		{"hand over", pending(func(r *driver.Record) { r.Released, r.ReleasedToken = driver.Nonce{7}, 15 }), holders(driver.HandOver, ofAttempt(3)), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Requeued && r.Attempt == 3 && r.Token == 10 && r.Takeovers == 1 && r.Reason == "why" && len(r.Steps) == 1 && r.AttemptEnd == 6 &&
				r.FirstSeen == 5 && r.Expire == now+3_600_000_000 && r.Released == driver.Nonce{7} && r.ReleasedToken == 15 && r.Nonce == driver.Nonce{} && r.LeaseEnd == 0
		}},
		{"hand over keeps a verdict's end", pending(func(r *driver.Record) { r.AttemptEnd = 77 }), holders(driver.HandOver), driver.OK, func(r *driver.Record) bool { return r.AttemptEnd == 77 }},
		{"hand over, again", pending(state(driver.Requeued)), holders(driver.HandOver), driver.Repeated, nil},
		{"hand over of another attempt", pending(state(driver.Requeued)), holders(driver.HandOver, ofAttempt(3)), driver.Refused, nil},
		{"hand over, stranger", pending(state(driver.Requeued)), holders(driver.HandOver, stranger), driver.Refused, nil},
		{"hand over, dead", pending(state(driver.Dead)), holders(driver.HandOver), driver.Refused, nil},

		{"bury", pending(), holders(driver.Bury, func(t *driver.Transition) { t.InDoubt, t.Retention = true, 0 }), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Dead && r.InDoubt && r.Attempt == 2 && r.Expire == 0 && r.Reason == "why"
		}},
		{"bury, again", pending(state(driver.Dead)), holders(driver.Bury), driver.Repeated, nil},
		{"bury, lower", pending(state(driver.Dead)), holders(driver.Bury, ofAttempt(1)), driver.Repeated, nil},
		{"bury, higher", pending(state(driver.Dead), doubt), holders(driver.Bury, ofAttempt(8)), driver.OK, func(r *driver.Record) bool { return r.Attempt == 8 && r.InDoubt && r.State == driver.Dead }},
		{"bury, higher, stranger", pending(state(driver.Dead)), holders(driver.Bury, ofAttempt(8), stranger), driver.Refused, nil},
		{"bury, requeued", pending(state(driver.Requeued)), holders(driver.Bury), driver.Refused, nil},

		{"seal", pending(doubt), holders(driver.Seal), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Done && !r.InDoubt && r.EffectID == "e1" && string(r.Receipt) == "r" && r.SealedAt == now && r.Expire == now+3_600_000_000 && r.Step == 0 && r.Reason == "" && r.Nonce == driver.Nonce{}
		}},
		{"seal, nothing there", nil, holders(driver.Seal), driver.Vanished, is(driver.Done)},
		{"seal, tombstone", tombstone, holders(driver.Seal), driver.Vanished, is(driver.Done)},
		{"seal, expired", pending(state(driver.Dead), expires(now)), holders(driver.Seal), driver.Vanished, is(driver.Done)},
		{"seal, requeued", pending(state(driver.Requeued)), holders(driver.Seal, stranger), driver.Late, is(driver.Done)},
		{"seal, dead", pending(state(driver.Dead), doubt), holders(driver.Seal), driver.Late, is(driver.Done)},
		{"seal, another holder", pending(), holders(driver.Seal, stranger), driver.Refused, nil},
		{"seal, again", sealed, holders(driver.Seal), driver.Repeated, nil},
		{"seal, other receipt", sealed, holders(driver.Seal, func(t *driver.Transition) { t.Receipt = nil }), driver.Refused, nil},
		{"seal, done by another", sealed, holders(driver.Seal, stranger), driver.Refused, nil},

		{"resolve applied", pending(state(driver.Dead), doubt), holders(driver.Resolve, asApplied, ofAttempt(9)), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Done && r.EffectID == "e1" && r.Attempt == 2 && r.Origin.Offset == 5 && r.FirstSeen == now-1000 && !r.InDoubt
		}},
		{"resolve not applied", pending(state(driver.Dead), doubt), holders(driver.Resolve), driver.OK, func(r *driver.Record) bool {
			return r.State == driver.Dead && !r.InDoubt && r.Reason == "why" && r.Expire == now+3_600_000_000 && r.Attempt == 2
		}},
		{"resolve applied, again", sealed, holders(driver.Resolve, asApplied), driver.Repeated, nil},
		{"resolve not applied, again", pending(state(driver.Dead)), holders(driver.Resolve), driver.Repeated, nil},
		{"resolve applied without doubt", pending(state(driver.Dead)), holders(driver.Resolve, asApplied), driver.Refused, nil},
		{"resolve, stranger", pending(state(driver.Dead), doubt), holders(driver.Resolve, stranger), driver.Refused, nil},
		{"resolve, pending", pending(doubt), holders(driver.Resolve), driver.Refused, nil},
		{"resolve, requeued", pending(state(driver.Requeued), doubt), holders(driver.Resolve, asApplied), driver.Refused, nil},
		{"no transition", pending(), holders(driver.NoOp), driver.Refused, nil},
		{"unknown transition", pending(), holders(99), driver.Refused, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, got := c.say.Decide(c.found, now)
			if got.Outcome != c.want || got.Err != nil || got.Now != now {
				t.Fatalf("answered %v at %d, error %v, want %v", got.Outcome, got.Now, got.Err, c.want)
			}
			switch {
			case c.wrote == nil && next != nil:
				t.Errorf("wrote %+v", next)
			case c.wrote != nil && next == nil:
				t.Error("wrote nothing")
			case c.wrote != nil && !c.wrote(next):
				t.Errorf("wrote %+v", next)
			}
			shown := got.Outcome == driver.Refused || got.Outcome == driver.Repeated || got.Outcome == driver.Late
			if c.found != nil && shown && !same(got.Record, *c.found) {
				t.Errorf("the answer shows %+v", got.Record)
			}
			if !shown && !same(got.Record, driver.Record{}) {
				t.Errorf("the answer shows %+v without need", got.Record)
			}
		})
	}
}

// TestDoneIsTerminal: no transition of anybody changes done.
func TestDoneIsTerminal(t *testing.T) {
	done := pending(state(driver.Done), func(r *driver.Record) { r.EffectID, r.Receipt = "e1", []byte("r") })
	for op := range driver.Op(20) {
		for _, change := range []func(*driver.Transition){func(*driver.Transition) {}, stranger, asApplied, ofAttempt(9)} {
			tr := holders(op, change)
			if next, got := tr.Decide(done, now); next != nil || got.Outcome == driver.OK {
				t.Errorf("%v: %v, wrote %+v", op, got.Outcome, next)
			}
		}
	}
}
