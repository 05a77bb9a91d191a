package driver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

const now = 1_700_000_000_000_000

func count(prev uint64) uint64 { return prev + 1 }

// pending is a record as its claim left it, with changes.
func pending(changes ...func(r *driver.Record)) *driver.Record {
	r := &driver.Record{
		State: driver.Pending, Kind: driver.KindProbed, Token: 10, Attempt: 2, Step: 1, Fingerprint: driver.Fingerprint{Scheme: 1, Sum: [16]byte{1}},
		Nonce: driver.Nonce{9}, LeaseEnd: now - 1, FirstSeen: now - 1000, Origin: driver.Origin{Topic: "orders", Offset: 5},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func state(s driver.State) func(*driver.Record) {
	return func(r *driver.Record) { r.State, r.Nonce, r.LeaseEnd = s, driver.Nonce{}, 0 }
}
func doubt(r *driver.Record)  { r.InDoubt = true }
func gaveUp(r *driver.Record) { r.Verdict, r.Reason = driver.VerdictGiveUp, "because" }
func retry(due int64) func(*driver.Record) {
	return func(r *driver.Record) {
		r.Verdict, r.NextAttempt, r.NextStep, r.Due, r.Reason = driver.VerdictRetry, 5, 3, due, "because"
	}
}
func kinds(k driver.Kind) func(*driver.Record) { return func(r *driver.Record) { r.Kind = k } }
func expires(at int64) func(*driver.Record)    { return func(r *driver.Record) { r.Expire = at } }

// granted is what a table wants of the pending record.
type granted struct {
	attempt, step, takeovers uint32
	doubt                    bool
	verdict                  driver.Verdict
	kind                     driver.Kind
}

func TestClaimDecides(t *testing.T) {
	fresh := granted{attempt: 2, step: 7, kind: driver.KindProbed}
	for _, c := range []struct {
		name  string
		found *driver.Record
		ask   func(c *driver.Claim)
		want  driver.Answer
		err   error
		grant granted
		left  time.Duration
	}{
		{name: "no record", want: driver.New, grant: fresh},
		{name: "a tombstone", found: &driver.Record{Released: driver.Nonce{5}, ReleasedToken: 30, Expire: now + 1}, want: driver.New, grant: fresh},
		{name: "expired done", found: pending(state(driver.Done), expires(now)), want: driver.New, grant: fresh},
		{name: "expired requeued", found: pending(state(driver.Requeued), expires(now-1)), want: driver.New, grant: fresh},
		{name: "expired dead", found: pending(state(driver.Dead), expires(now)), want: driver.New, grant: fresh},
		{name: "dead in doubt over its time", found: pending(state(driver.Dead), doubt, expires(now-1)), want: driver.IsDead},
		{name: "done", found: pending(state(driver.Done), expires(now+1)), want: driver.Duplicate},
		{name: "held", found: pending(func(r *driver.Record) { r.LeaseEnd = now + 7 }), want: driver.Held, left: 7 * time.Microsecond},
		{name: "no lease end", found: pending(func(r *driver.Record) { r.LeaseEnd = 0 }), want: driver.Held},
		{name: "lease ends now", found: pending(func(r *driver.Record) { r.LeaseEnd = now }), want: driver.InDoubt, grant: granted{3, 1, 1, true, 0, driver.KindProbed}},
		{name: "no takeover", found: pending(), ask: func(c *driver.Claim) { c.TakeoverUntil = now - 1 }, want: driver.Held},
		{name: "takeover up to now", found: pending(), ask: func(c *driver.Claim) { c.TakeoverUntil = now }, want: driver.InDoubt, grant: granted{3, 1, 1, true, 0, driver.KindProbed}},
		{name: "a copy of attempt 9 takes over", found: pending(), ask: func(c *driver.Claim) { c.Attempt = 9 }, want: driver.InDoubt, grant: granted{9, 7, 1, true, 0, driver.KindProbed}},
		{name: "another kind takes over", found: pending(), ask: func(c *driver.Claim) { c.Kind = driver.KindIdempotent }, want: driver.InDoubt, grant: granted{3, 1, 1, true, 0, driver.KindProbed}},
		{name: "transactional after transactional", found: pending(kinds(driver.KindTransactional)), ask: func(c *driver.Claim) { c.Kind = driver.KindTransactional }, want: driver.New, grant: granted{3, 1, 0, false, 0, driver.KindTransactional}},
		{name: "probed after transactional", found: pending(kinds(driver.KindTransactional)), want: driver.InDoubt, grant: granted{3, 1, 1, true, 0, driver.KindTransactional}},
		{name: "give_up", found: pending(gaveUp), ask: func(c *driver.Claim) { c.Attempt = 9 }, want: driver.GivingUp, grant: granted{2, 1, 0, false, driver.VerdictGiveUp, driver.KindProbed}},
		{name: "give_up in doubt", found: pending(gaveUp, doubt), want: driver.GivingUp, grant: granted{2, 1, 0, true, driver.VerdictGiveUp, driver.KindProbed}},
		{name: "retry before due", found: pending(retry(now + 1)), want: driver.Requeuing, grant: granted{2, 1, 0, false, driver.VerdictRetry, driver.KindProbed}},
		{name: "retry before due in place", found: pending(retry(now + 3)), ask: func(c *driver.Claim) { c.InPlace = true }, want: driver.Held, left: 3 * time.Microsecond},
		{name: "retry at due", found: pending(retry(now)), want: driver.New, grant: granted{5, 3, 0, false, 0, driver.KindProbed}},
		{name: "retry at due in place", found: pending(retry(now)), ask: func(c *driver.Claim) { c.InPlace = true }, want: driver.New, grant: granted{5, 3, 0, false, 0, driver.KindProbed}},
		{name: "retry in doubt at due", found: pending(retry(now), doubt), want: driver.InDoubt, grant: granted{5, 3, 0, true, 0, driver.KindProbed}},
		{name: "the copy before due", found: pending(retry(now + 1)), ask: func(c *driver.Claim) { c.Attempt = 5 }, want: driver.New, grant: granted{5, 7, 0, false, 0, driver.KindProbed}},
		{name: "a later copy", found: pending(retry(now)), ask: func(c *driver.Claim) { c.Attempt = 6 }, want: driver.New, grant: granted{6, 7, 0, false, 0, driver.KindProbed}},
		{name: "requeued, below", found: pending(state(driver.Requeued)), ask: func(c *driver.Claim) { c.Attempt = 1 }, want: driver.Superseded},
		{name: "requeued, equal", found: pending(state(driver.Requeued)), want: driver.New, grant: fresh},
		{name: "requeued in doubt", found: pending(state(driver.Requeued), doubt), want: driver.InDoubt, grant: granted{2, 7, 0, true, 0, driver.KindProbed}},
		{name: "dead, equal", found: pending(state(driver.Dead)), want: driver.IsDead},
		{name: "dead, above", found: pending(state(driver.Dead)), ask: func(c *driver.Claim) { c.Attempt = 3 }, want: driver.New, grant: granted{3, 7, 0, false, 0, driver.KindProbed}},
		{name: "dead in doubt, above", found: pending(state(driver.Dead), doubt), ask: func(c *driver.Claim) { c.Attempt = 3 }, want: driver.InDoubt, grant: granted{3, 7, 0, true, 0, driver.KindProbed}},
		{name: "dead in doubt of another kind", found: pending(state(driver.Dead), doubt, kinds(driver.KindIdempotent)), ask: func(c *driver.Claim) { c.Attempt = 3 }, want: driver.IsDead},
		{name: "dead of another kind", found: pending(state(driver.Dead), kinds(driver.KindIdempotent)), ask: func(c *driver.Claim) { c.Attempt = 3 }, want: driver.New, grant: granted{3, 7, 0, false, 0, driver.KindProbed}},
		{
			name: "dead in doubt at most once", found: pending(state(driver.Dead), doubt, kinds(driver.KindAtMostOnce)),
			ask: func(c *driver.Claim) { c.Attempt, c.Kind = 3, driver.KindAtMostOnce }, want: driver.IsDead,
		},
		{name: "conflict while held", found: pending(func(r *driver.Record) { r.LeaseEnd = now + 1 }), ask: otherPayload, want: driver.Conflict},
		{name: "conflict on done", found: pending(state(driver.Done)), ask: otherPayload, want: driver.Conflict},
		{name: "conflict on dead", found: pending(state(driver.Dead)), ask: otherPayload, want: driver.Conflict},
		{name: "conflict of an ended lease", found: pending(), ask: otherPayload, want: driver.Conflict},
		{name: "another scheme", found: pending(state(driver.Done)), ask: func(c *driver.Claim) { c.Fingerprint.Scheme, c.Fingerprint.Sum[0] = 2, 7 }, want: driver.Duplicate},
		{name: "no payload", found: pending(state(driver.Done)), ask: func(c *driver.Claim) { c.Fingerprint = driver.Fingerprint{} }, want: driver.Duplicate},
		{name: "too late", ask: func(c *driver.Claim) { c.NotAfter = now - 1 }, err: driver.ErrTooLate},
		{name: "just in time", ask: func(c *driver.Claim) { c.NotAfter = now }, want: driver.New, grant: fresh},
		{name: "released", found: &driver.Record{Released: driver.Nonce{1}, Expire: now + 1}, err: driver.ErrReleased},
		{name: "released and too late", found: &driver.Record{Released: driver.Nonce{1}, Expire: now + 1}, ask: func(c *driver.Claim) { c.NotAfter = 1 }, err: driver.ErrReleased},
		{name: "released onto requeued", found: pending(state(driver.Requeued), func(r *driver.Record) { r.Released = driver.Nonce{1} }), err: driver.ErrReleased},
		{name: "sent again", found: pending(func(r *driver.Record) { r.Nonce = driver.Nonce{1} }), ask: func(c *driver.Claim) { c.NotAfter = 1 }, want: driver.New},
		{name: "sent again in doubt", found: pending(doubt, func(r *driver.Record) { r.Nonce = driver.Nonce{1} }), want: driver.InDoubt},
		{name: "sent again giving up", found: pending(gaveUp, doubt, func(r *driver.Record) { r.Nonce = driver.Nonce{1} }), want: driver.GivingUp},
		{name: "sent again requeuing", found: pending(retry(now+1), doubt, func(r *driver.Record) { r.Nonce = driver.Nonce{1} }), want: driver.Requeuing},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := driver.Claim{
				Nonce: driver.Nonce{1}, Kind: driver.KindProbed, Attempt: 2, Step: 7, Lease: time.Second, Fingerprint: driver.Fingerprint{Scheme: 1, Sum: [16]byte{1}},
				Origin: driver.Origin{Topic: "retry", Offset: 1}, TakeoverUntil: now + 1,
			}
			if c.ask != nil {
				c.ask(&claim)
			}
			next, got := claim.Decide(c.found, now, count)
			if got.Answer != c.want || !errors.Is(got.Err, c.err) || (got.Err != nil) != (c.err != nil) {
				t.Fatalf("answered %v, error %v, want %v, %v", got.Answer, got.Err, c.want, c.err)
			}
			if got.Left != c.left || got.Now != now {
				t.Errorf("left %v, now %d", got.Left, got.Now)
			}
			if c.grant == (granted{}) {
				if next != nil {
					t.Errorf("wrote %+v", next)
				}
				return
			}
			if next == nil {
				t.Fatal("wrote nothing")
			}
			if g := (granted{next.Attempt, next.Step, next.Takeovers, next.InDoubt, next.Verdict, next.Kind}); g != c.grant {
				t.Errorf("granted %+v, want %+v", g, c.grant)
			}
			if !same(got.Record, *next) || next.State != driver.Pending || next.Nonce != claim.Nonce || next.LeaseEnd != now+1_000_000 {
				t.Errorf("the answer has %+v, written is %+v", got.Record, next)
			}
			checkPrior(t, c.found, next)
		})
	}
}

func otherPayload(c *driver.Claim) { c.Fingerprint.Sum[0] = 99 }

// checkPrior wants a grant to keep what it found and what that says of the
// first claim.
func checkPrior(t *testing.T, found, next *driver.Record) {
	t.Helper()
	if found == nil || found.State == driver.Absent || found.Expired(now) {
		if next.Prior != nil || next.FirstSeen != now || next.Origin.Topic != "retry" {
			t.Errorf("a first claim: %+v", next)
		}
	} else if next.Prior == nil || !same(*next.Prior, *found) || next.FirstSeen != found.FirstSeen || next.Origin != found.Origin {
		t.Errorf("found %+v, kept %+v", found, next)
	}
	if found != nil && (next.Token <= found.Token || next.Token <= found.ReleasedToken) {
		t.Errorf("token %d after %d and %d", next.Token, found.Token, found.ReleasedToken)
	}
}

func TestClaimKeepsOnePrior(t *testing.T) {
	claim := driver.Claim{Nonce: driver.Nonce{1}, Kind: driver.KindProbed, Attempt: 1, Lease: time.Second, TakeoverUntil: now}
	first := pending(state(driver.Requeued))
	second := pending(func(r *driver.Record) { r.Prior = first })
	next, _ := claim.Decide(second, now, count)
	if next.Prior.Prior != nil || !next.Prior.PriorLost {
		t.Errorf("the prior record keeps one of its own, or does not say that it lost it: %+v", next.Prior)
	}
	if second.Prior != first {
		t.Error("the record that was found was changed")
	}
}

func TestClaimEndsTheAttempt(t *testing.T) {
	claim := driver.Claim{Nonce: driver.Nonce{1}, Kind: driver.KindProbed, Attempt: 1, Lease: time.Second, TakeoverUntil: now}
	for name, c := range map[string]struct {
		found *driver.Record
		want  int64
	}{
		"no verdict":             {pending(), now - 1},
		"an earlier, later end":  {pending(func(r *driver.Record) { r.AttemptEnd = now }), now},
		"a verdict had ended it": {pending(retry(now), func(r *driver.Record) { r.AttemptEnd = now - 50 }), now - 50},
		"requeued keeps it":      {pending(state(driver.Requeued), func(r *driver.Record) { r.Attempt, r.AttemptEnd = 1, 77 }), 77},
	} {
		if next, _ := claim.Decide(c.found, now, count); next.AttemptEnd != c.want {
			t.Errorf("%s: %d, want %d", name, next.AttemptEnd, c.want)
		}
	}
}
