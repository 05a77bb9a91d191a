package fencetest

import (
	"github.com/oncefence/oncefence/fence/driver"
)

type (
	record  = driver.Record
	tokener = func(uint64) uint64
)

// mutant is a store that breaks a rule.
type mutant struct {
	bend bend
	rule string
}

// mutants are stores that break one rule each, with the rule that says so.
var mutants = map[string]mutant{
	"a pending key is a duplicate": {rule: "claim/held", bend: asked(nil, func(_ *driver.Claim, _ *record, a *driver.Claimed, _ **record) {
		if a.Answer == driver.Held {
			a.Answer = driver.Duplicate
		}
	})},
	"a held claim writes": {rule: "claim/held", bend: asked(nil, func(_ *driver.Claim, found *record, a *driver.Claimed, next **record) {
		if a.Answer == driver.Held {
			found.LeaseEnd++
			*next = found
		}
	})},
	"a duplicate comes without its receipt": {rule: "claim/duplicate", bend: asked(nil, func(_ *driver.Claim, _ *record, a *driver.Claimed, _ **record) {
		if a.Answer == driver.Duplicate {
			a.Record.Receipt = nil
		}
	})},
	"a claim forgets its origin":       {rule: "claim/new", bend: asked(func(c *driver.Claim, _ *record) { c.Origin = driver.Origin{} }, nil)},
	"the delivery's step is forgotten": {rule: "claim/requeued-runs", bend: asked(func(c *driver.Claim, _ *record) { c.Step = 0 }, nil)},
	"a verdict frees the key": {rule: "claim/held-after-verdict", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil && found.Verdict != driver.NoVerdict {
			found.LeaseEnd = 1
		}
	}, nil)},
	"an old copy runs on a requeued key": {rule: "claim/superseded", bend: asked(func(c *driver.Claim, found *record) {
		if found != nil && found.State == driver.Requeued {
			c.Attempt = max(c.Attempt, found.Attempt)
		}
	}, nil)},
	"dead opens to its own attempt": {rule: "claim/dead", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil && found.State == driver.Dead {
			found.Attempt--
		}
	}, nil)},
	"dead never opens": {rule: "claim/dead-reopens", bend: asked(func(c *driver.Claim, found *record) {
		if found != nil && found.State == driver.Dead {
			c.Attempt = 1
		}
	}, nil)},
	"fingerprints are not compared":     {rule: "claim/conflict", bend: asked(func(c *driver.Claim, _ *record) { c.Fingerprint.Scheme = 0 }, nil)},
	"fingerprints of all schemes count": {rule: "claim/schemes", bend: asked(func(c *driver.Claim, _ *record) { c.Fingerprint.Scheme = 1 }, nil)},
	"tokens are random":                 {rule: "claim/token-grows", bend: bend{token: shrinking()}},
	"a takeover is new": {rule: "takeover/in-doubt", bend: asked(func(c *driver.Claim, found *record) {
		if found != nil && found.State == driver.Pending {
			found.Kind, c.Kind = driver.KindTransactional, driver.KindTransactional
		}
	}, nil)},
	"takeovers are not counted": {rule: "takeover/count", bend: asked(nil, func(_ *driver.Claim, _ *record, a *driver.Claimed, next **record) {
		if *next != nil {
			(*next).Takeovers, a.Record.Takeovers = 0, 0
		}
	})},
	"a takeover keeps a copy's lower attempt": {rule: "takeover/higher-delivery", bend: asked(func(c *driver.Claim, found *record) {
		if found != nil && found.State == driver.Pending {
			c.Attempt = min(c.Attempt, found.Attempt)
		}
	}, nil)},
	"transactional is in doubt": {rule: "takeover/transactional", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil && found.Kind == driver.KindTransactional {
			found.Kind = driver.KindProbed
		}
	}, nil)},
	"give_up is forgotten": {rule: "takeover/giving-up", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil && found.Verdict == driver.VerdictGiveUp {
			found.Verdict = driver.NoVerdict
		}
	}, nil)},
	"the due time is not waited for": {rule: "takeover/requeuing", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil {
			found.Due = 0
		}
	}, nil)},
	"in place is not known":  {rule: "takeover/in-place", bend: asked(func(c *driver.Claim, _ *record) { c.InPlace = false }, nil)},
	"nothing is ever due":    {rule: "takeover/retry-due", bend: said(func(t *driver.Transition, _ *record) { t.Due = 1000 * long }, nil)},
	"a copy waits when due":  {rule: "takeover/retry-copy", bend: asked(func(c *driver.Claim, found *record) { capAttempt(c, found) }, nil)},
	"a jumped clock is fine": {rule: "takeover/until", bend: asked(func(c *driver.Claim, _ *record) { c.TakeoverUntil = 1 << 60 }, nil)},
	"requeued forgets doubt": {rule: "doubt/requeued", bend: said(func(t *driver.Transition, _ *record) { t.InDoubt = t.InDoubt && t.Op != driver.HandOver }, nil)},
	"retry forgets doubt":    {rule: "doubt/retry", bend: said(func(t *driver.Transition, _ *record) { t.InDoubt = t.InDoubt && t.Op != driver.Retry }, nil)},
	"begin clears doubt": {rule: "doubt/begin", bend: said(nil, func(t *driver.Transition, _ *record, _ *driver.Applied, next **record) {
		if t.Op == driver.Begin && *next != nil {
			(*next).InDoubt = false
		}
	})},
	"a renewal clears doubt": {rule: "doubt/kept-at-takeover", bend: said(nil, func(t *driver.Transition, _ *record, _ *driver.Applied, next **record) {
		if t.Op == driver.Renew && *next != nil {
			(*next).InDoubt = false
		}
	})},
	"the new holder's kind decides": {rule: "doubt/kind", bend: asked(nil, func(c *driver.Claim, _ *record, a *driver.Claimed, next **record) {
		if *next != nil {
			(*next).Kind, a.Record.Kind = c.Kind, c.Kind
		}
	})},
	"dead in doubt opens as new": {rule: "doubt/dead-reopens", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil && found.State == driver.Dead {
			found.InDoubt = false
		}
	}, nil)},
	"at-most-once opens in doubt": {rule: "doubt/at-most-once-closed", bend: asked(func(c *driver.Claim, found *record) {
		if found != nil && found.State == driver.Dead && found.Kind == driver.KindAtMostOnce {
			found.Kind, c.Kind = driver.KindProbed, driver.KindProbed
		}
	}, nil)},
	"doubt of another kind opens": {rule: "doubt/other-kind-closed", bend: asked(func(c *driver.Claim, found *record) {
		if found != nil && found.State == driver.Dead && found.Kind != driver.KindAtMostOnce {
			c.Kind = found.Kind
		}
	}, nil)},
	"the nonce is forgotten": {rule: "nonce/same-answer", bend: asked(func(c *driver.Claim, _ *record) { c.Nonce = nonce() }, nil)},
	"a claim sent again lengthens its lease": {rule: "nonce/lease-stays", bend: asked(nil, func(c *driver.Claim, found *record, a *driver.Claimed, next **record) {
		if found != nil && found.State == driver.Pending && found.Nonce == c.Nonce {
			found.LeaseEnd = a.Now + c.Lease.Microseconds()
			a.Record, *next = *found, found
		}
	})},
	"a released claim comes back": {rule: "nonce/released", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil {
			found.Released = driver.Nonce{}
		}
	}, nil)},
	"a late claim is taken": {rule: "nonce/not-after", bend: asked(func(c *driver.Claim, _ *record) { c.NotAfter = 0 }, nil)},
	"a late re-send is refused": {rule: "nonce/answered-late", bend: asked(nil, func(c *driver.Claim, _ *record, a *driver.Claimed, _ **record) {
		if c.NotAfter != 0 && a.Now > c.NotAfter {
			a.Err = driver.ErrTooLate
		}
	})},
	"the holder cannot renew after the lease": {rule: "renew/ended-lease", bend: said(onlyAlive(driver.Renew), nil)},
	"a renewal lasts no longer":               {rule: "renew/moves-lease", bend: said(nil, keepLease)},
	"any token renews":                        {rule: "renew/refused", bend: said(anyToken(driver.Renew), nil)},
	"unknown transitions are fine": {rule: "apply/unknown", bend: said(nil, func(t *driver.Transition, _ *record, a *driver.Applied, _ **record) {
		if t.Op == driver.NoOp || t.Op > driver.Resolve {
			a.Outcome = driver.OK
		}
	})},
	"a release leaves the key pending": {rule: "release/to-absent", bend: released(func(_, next *record) { next.State, next.LeaseEnd = driver.Pending, 1 })},
	"a release forgets what it found":  {rule: "release/exact", bend: released(func(_, next *record) { *next = record{Released: next.Released, ReleasedToken: next.ReleasedToken} })},
	"a release clears the doubt":       {rule: "release/exact", bend: released(func(_, next *record) { next.InDoubt = false })},
	"a release lengthens a retention":  {rule: "release/expiry", bend: released(func(_, next *record) { next.Expire += int64(long) })},
	"any nonce releases": {rule: "release/nonce", bend: said(func(t *driver.Transition, found *record) {
		if found != nil {
			t.Nonce = found.Nonce
		}
	}, nil)},
	"a release sent again is refused": {rule: "release/repeated", bend: repeatedRefused(driver.Release)},
	"a lost prior is absent": {rule: "release/prior-lost", bend: said(func(_ *driver.Transition, found *record) {
		if found != nil {
			found.PriorLost = false
		}
	}, nil)},
	"a token is lost by two releases": {rule: "release/put-back-alone", bend: withToken(lastReleased)},
	"a token is lost by a late hand over": {rule: "release/token-carried", bend: withToken(func(t *driver.Transition, _, next *record) {
		if t.Op == driver.HandOver || t.Op == driver.Bury {
			next.ReleasedToken = 0
		}
	})},
	"a verdict does not end the attempt": {rule: "verdict/written", bend: said(nil, func(t *driver.Transition, found *record, _ *driver.Applied, next **record) {
		if (t.Op == driver.Retry || t.Op == driver.GiveUp) && *next != nil {
			(*next).AttemptEnd = found.AttemptEnd
		}
	})},
	"a verdict of any attempt counts": {rule: "verdict/refused", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && (t.Op == driver.Retry || t.Op == driver.GiveUp) {
			t.Attempt = found.Attempt
		}
	}, nil)},
	"a late verdict is refused": {rule: "verdict/ended-lease", bend: said(onlyAlive(driver.Retry, driver.GiveUp), nil)},
	"a verdict said again moves its times": {rule: "verdict/repeated", bend: said(nil, func(t *driver.Transition, found *record, a *driver.Applied, next **record) {
		if (t.Op == driver.Retry || t.Op == driver.GiveUp) && a.Outcome == driver.Repeated {
			found.AttemptEnd++
			*next = found
		}
	})},
	"retry undoes give_up": {rule: "verdict/no-way-back", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Retry && found.Verdict == driver.VerdictGiveUp {
			found.Verdict = driver.NoVerdict
		}
	}, nil)},
	"begin keeps the verdict": {rule: "begin/next-attempt", bend: said(nil, func(t *driver.Transition, found *record, _ *driver.Applied, next **record) {
		if t.Op == driver.Begin && *next != nil {
			(*next).Verdict = found.Verdict
		}
	})},
	"begin needs no verdict": {rule: "begin/refused", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Begin {
			found.Verdict = driver.VerdictRetry
		}
	}, nil)},
	"a late keep drops steps": {rule: "keep/steps", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Keep {
			found.Steps = nil
		}
	}, nil)},
	"steps end with the attempt": {rule: "keep/carried", bend: said(func(t *driver.Transition, _ *record) {
		if t.Op != driver.Keep {
			t.Steps = nil
		}
	}, nil)},
	"a hand over forgets takeovers": {rule: "end/written", bend: said(func(t *driver.Transition, _ *record) { t.Takeovers = 0 }, nil)},
	"a hand over forgets when the attempt ended": {rule: "end/attempt-end", bend: said(nil, func(t *driver.Transition, _ *record, _ *driver.Applied, next **record) {
		if (t.Op == driver.HandOver || t.Op == driver.Bury) && *next != nil {
			(*next).AttemptEnd = t.AttemptEnd
		}
	})},
	"a late hand over is refused":       {rule: "end/ended-lease", bend: said(onlyAlive(driver.HandOver, driver.Bury), nil)},
	"a hand over sent again is refused": {rule: "end/repeated", bend: repeatedRefused(driver.HandOver)},
	"any token buries":                  {rule: "end/refused", bend: said(anyToken(driver.Bury), nil)},
	"a bury moves a requeued key": {rule: "end/moved-on", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Bury && found.State == driver.Requeued {
			found.State = driver.Pending
		}
	}, nil)},
	"an old hand over ends a new claim": {rule: "end/late-on-next-holder", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && found.Prior != nil && found.Prior.Token == t.Token {
			t.Token = found.Token
		}
	}, nil)},
	"a bury lowers the attempt": {rule: "bury/raises", bend: said(nil, func(t *driver.Transition, found *record, a *driver.Applied, next **record) {
		if t.Op == driver.Bury && a.Outcome == driver.Repeated {
			found.Attempt = t.Attempt
			*next = found
		}
	})},
	"a bury raises a resolved key": {rule: "bury/raises", bend: said(nil, func(t *driver.Transition, found *record, a *driver.Applied, next **record) {
		if t.Op == driver.Bury && found.State == driver.Dead && found.Token == t.Token && t.Attempt > found.Attempt {
			found.Attempt = t.Attempt
			a.Outcome, *next = driver.OK, found
		}
	})},
	"a seal keeps the step":          {rule: "seal/written", bend: said(nil, sealKeeps)},
	"a seal after the lease is lost": {rule: "seal/ended-lease", bend: said(onlyAlive(driver.Seal), nil)},
	"a seal sent again is refused":   {rule: "seal/repeated", bend: repeatedRefused(driver.Seal)},
	"a second receipt is fine": {rule: "seal/second-refused", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Seal && found.State == driver.Done {
			t.Receipt = found.Receipt
		}
	}, nil)},
	"the token is not compared at seal": {rule: "seal/stale", bend: said(anyToken(driver.Seal), nil)},
	"a vanished seal is refused": {rule: "seal/vanished", bend: said(nil, func(_ *driver.Transition, _ *record, a *driver.Applied, next **record) {
		if a.Outcome == driver.Vanished {
			a.Outcome, *next = driver.Refused, nil
		}
	})},
	"a seal of a dead key is refused": {rule: "seal/late", bend: said(nil, func(_ *driver.Transition, _ *record, a *driver.Applied, next **record) {
		if a.Outcome == driver.Late {
			a.Outcome, *next = driver.Refused, nil
		}
	})},
	"done can be buried": {rule: "seal/terminal", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Bury && found.State == driver.Done {
			found.State = driver.Pending
		}
	}, nil)},
	"resolve takes the caller's attempt": {rule: "resolve/applied", bend: said(nil, func(t *driver.Transition, _ *record, _ *driver.Applied, next **record) {
		if t.Op == driver.Resolve && *next != nil {
			(*next).Attempt = t.Attempt
		}
	})},
	"resolve leaves the doubt": {rule: "resolve/not-applied", bend: said(nil, func(t *driver.Transition, _ *record, _ *driver.Applied, next **record) {
		if t.Op == driver.Resolve && *next != nil && !t.Applied {
			(*next).InDoubt = true
		}
	})},
	"any token resolves": {rule: "resolve/refused", bend: said(anyToken(driver.Resolve), nil)},
}
