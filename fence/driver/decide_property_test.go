package driver_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// randomRecord makes a record that a store could hold.
func randomRecord(r *rand.Rand) *driver.Record {
	if r.IntN(8) == 0 {
		return nil
	}
	ends := []int64{0, now - 1, now, now + 1000}
	small := func() uint32 { return uint32(1 + r.IntN(4)) }
	out := &driver.Record{
		State: driver.State(r.IntN(5)), Kind: driver.Kind(1 + r.IntN(4)), Token: uint64(1 + r.IntN(4)), Attempt: small(), Step: small(), Takeovers: small(),
		Fingerprint: driver.Fingerprint{Scheme: byte(r.IntN(3)), Sum: [16]byte{byte(r.IntN(2))}}, Released: driver.Nonce{byte(r.IntN(3))}, ReleasedToken: uint64(r.IntN(6)),
		FirstSeen: 1 + r.Int64N(9), Origin: driver.Origin{Offset: r.Int64N(9)},
	}
	if out.State != driver.Pending {
		out.Expire = ends[r.IntN(4)]
	}
	switch out.State {
	case driver.Done:
		out.EffectID, out.SealedAt, out.Step, out.Takeovers, out.Released, out.ReleasedToken = "e1", 5, 0, 0, driver.Nonce{}, 0
	case driver.Absent:
		*out = driver.Record{Released: out.Released, ReleasedToken: out.ReleasedToken, Expire: out.Expire}
	case driver.Pending:
		out.Nonce, out.LeaseEnd = driver.Nonce{byte(1 + r.IntN(2))}, ends[r.IntN(4)]
		if out.Verdict = driver.Verdict(r.IntN(3)); out.Verdict == driver.VerdictRetry {
			out.NextAttempt, out.NextStep, out.Due = out.Attempt+small(), out.Step+1, ends[1+r.IntN(3)]
		}
		out.PriorLost = r.IntN(4) == 0
		fallthrough
	default:
		out.InDoubt, out.AttemptEnd = r.IntN(2) == 0, r.Int64N(9)
		out.Steps = []driver.Step{{Name: "a"}, {Name: "b"}}[:r.IntN(3)]
		if len(out.Steps) == 0 {
			out.Steps = nil
		}
	}
	return out
}

func randomClaim(r *rand.Rand) driver.Claim {
	ends := []int64{0, now - 1, now, now + 1000}
	return driver.Claim{
		Nonce: driver.Nonce{byte(1 + r.IntN(3))}, Kind: driver.Kind(1 + r.IntN(4)), Attempt: uint32(1 + r.IntN(5)), Step: uint32(r.IntN(4)), Lease: time.Second,
		Fingerprint: driver.Fingerprint{Scheme: byte(r.IntN(3)), Sum: [16]byte{byte(r.IntN(2))}}, InPlace: r.IntN(2) == 0, NotAfter: ends[r.IntN(4)], TakeoverUntil: ends[r.IntN(4)],
	}
}

func copyOf(r *driver.Record) driver.Record {
	if r == nil {
		return driver.Record{}
	}
	return *r
}

const draws = 20_000

func TestClaimProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range draws {
		found, claim := randomRecord(r), randomClaim(r)
		before, tokens := copyOf(found), 0
		next, got := claim.Decide(found, now, func(prev uint64) uint64 { tokens++; return prev + 1 })
		if found != nil && !same(*found, before) {
			t.Fatalf("%+v was changed to %+v", before, *found)
		}
		resent := found != nil && found.State == driver.Pending && found.Nonce == claim.Nonce
		switch {
		case (next != nil) != (tokens == 1):
			t.Fatalf("%d tokens for %+v", tokens, next)
		case next != nil && (!got.Answer.Granted() || got.Err != nil):
			t.Fatalf("answered %v, %v and wrote", got.Answer, got.Err)
		case got.Answer.Granted() && next == nil && !resent:
			t.Fatalf("granted without writing: %+v", before)
		case next == nil:
			continue
		case next.Token <= before.Token || next.Token <= before.ReleasedToken:
			t.Fatalf("token %d over %+v", next.Token, before)
		case before.State == driver.Done && !before.Expired(now):
			t.Fatalf("wrote over done: %+v", next)
		case before.InDoubt && !before.Expired(now) && before.State != driver.Done && !next.InDoubt:
			t.Fatalf("doubt was lost: %+v to %+v", before, next)
		case next.InDoubt && got.Answer == driver.New:
			t.Fatalf("a doubtful record was granted as new: %+v", next)
		case next.Attempt < before.Attempt && !before.Expired(now):
			t.Fatalf("the attempt went from %d to %d", before.Attempt, next.Attempt)
		}
		again, repeated := claim.Decide(next, now+5_000_000, count)
		if again != nil || repeated.Answer != got.Answer || !same(repeated.Record, got.Record) {
			t.Fatalf("sent again: %v with %+v, before %v with %+v", repeated.Answer, repeated.Record, got.Answer, got.Record)
		}
		if next.Prior == nil {
			continue
		}
		release := driver.Transition{Op: driver.Release, Token: next.Token, Nonce: next.Nonce}
		back, _ := release.Decide(next, now)
		back.Released, back.ReleasedToken, back.PriorLost = before.Released, before.ReleasedToken, before.PriorLost
		if !same(*back, before) {
			t.Fatalf("a release put back %+v, the claim had found %+v", back, before)
		}
	}
}

// TestTransitionsTwice: a transition that took effect changes nothing the
// second time, but for a renewal's lease.
func TestTransitionsTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	effects := 0
	for range draws {
		found := randomRecord(r)
		tr := driver.Transition{
			Op: driver.Op(r.IntN(12)), Token: uint64(1 + r.IntN(4)), Nonce: driver.Nonce{byte(1 + r.IntN(2))}, Attempt: uint32(1 + r.IntN(4)), NextAttempt: uint32(5 + r.IntN(2)),
			Lease: time.Second, Retention: time.Hour, InDoubt: r.IntN(2) == 0, Applied: r.IntN(2) == 0, EffectID: "e1", Steps: []driver.Step{{Name: "a"}, {Name: "b"}}[:r.IntN(3)],
		}
		before := copyOf(found)
		next, got := tr.Decide(found, now)
		if found != nil && !same(*found, before) {
			t.Fatalf("%+v was changed to %+v", before, *found)
		}
		if (next != nil) != (got.Outcome == driver.OK || got.Outcome == driver.Vanished || got.Outcome == driver.Late) {
			t.Fatalf("%v of %+v: answered %v, wrote %+v", tr.Op, before, got.Outcome, next)
		}
		if next == nil {
			continue
		}
		effects++
		if tr.Op != driver.Seal && tr.Op != driver.Resolve && tr.Op != driver.Release && before.Token != tr.Token {
			t.Fatalf("%v with token %d wrote over %+v", tr.Op, tr.Token, before)
		}
		again, repeated := tr.Decide(next, now+1)
		if again != nil && tr.Op == driver.Renew {
			again.LeaseEnd = next.LeaseEnd
		}
		if again != nil && !same(*again, *next) || repeated.Outcome == driver.Refused {
			t.Fatalf("%v again: %v, %+v\nafter %+v", tr.Op, repeated.Outcome, again, next)
		}
	}
	if effects < draws/100 {
		t.Errorf("only %d of %d transitions took effect", effects, draws)
	}
}
