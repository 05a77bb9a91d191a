package fencetest

import (
	"slices"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// asked bends claims: before may change the claim and the record that it finds,
// after the answer and the record that is written.
func asked(before func(c *driver.Claim, found *record), after func(c *driver.Claim, found *record, a *driver.Claimed, next **record)) bend {
	return bend{claim: func(c *driver.Claim, found *record, now int64, token tokener) (*record, driver.Claimed) {
		if before != nil {
			before(c, found)
		}
		next, answer := c.Decide(found, now, token)
		if after != nil {
			after(c, found, &answer, &next)
		}
		return next, answer
	}}
}

// said bends transitions in the same way.
func said(before func(t *driver.Transition, found *record), after func(t *driver.Transition, found *record, a *driver.Applied, next **record)) bend {
	return bend{apply: func(t *driver.Transition, found *record, now int64) (*record, driver.Applied) {
		if before != nil {
			before(t, found)
		}
		next, answer := t.Decide(found, now)
		if after != nil {
			after(t, found, &answer, &next)
		}
		return next, answer
	}}
}

// anyToken lets every caller be the holder.
func anyToken(ops ...driver.Op) func(*driver.Transition, *record) {
	return func(t *driver.Transition, found *record) {
		if found != nil && slices.Contains(ops, t.Op) {
			t.Token = found.Token
		}
	}
}

// onlyAlive takes the token from a holder whose lease ended.
func onlyAlive(ops ...driver.Op) func(*driver.Transition, *record) {
	return func(t *driver.Transition, found *record) {
		if found != nil && slices.Contains(ops, t.Op) && found.State == driver.Pending && !found.Held(driver.Micros(time.Now())) {
			found.Token = 1 << 50
		}
	}
}

func keepLease(t *driver.Transition, found *record, _ *driver.Applied, next **record) {
	if t.Op == driver.Renew && *next != nil {
		(*next).LeaseEnd = found.LeaseEnd
	}
}

func sealKeeps(t *driver.Transition, found *record, _ *driver.Applied, next **record) {
	if t.Op == driver.Seal && *next != nil && found != nil {
		(*next).Kind = driver.KindProbed
	}
}

func repeatedRefused(op driver.Op) bend {
	return said(nil, func(t *driver.Transition, _ *record, a *driver.Applied, _ **record) {
		if t.Op == op && a.Outcome == driver.Repeated {
			a.Outcome = driver.Refused
		}
	})
}

// released bends what a release puts back.
func released(change func(found, next *record)) bend {
	return said(nil, func(t *driver.Transition, found *record, _ *driver.Applied, next **record) {
		if t.Op == driver.Release && *next != nil {
			change(found, *next)
		}
	})
}

// withToken makes tokens from the record alone, as a store without a sequence
// does, and bends what transitions write.
func withToken(change func(t *driver.Transition, found, next *record)) bend {
	b := said(nil, func(t *driver.Transition, found *record, _ *driver.Applied, next **record) {
		if *next != nil {
			change(t, found, *next)
		}
	})
	b.token = func(prev uint64) uint64 { return prev + 1 }
	return b
}

func lastReleased(t *driver.Transition, found, next *record) {
	if t.Op == driver.Release {
		next.ReleasedToken = found.Token
	}
}

// shrinking makes tokens that only go down.
func shrinking() func(uint64) uint64 {
	n := uint64(1 << 30)
	return func(uint64) uint64 { n--; return n }
}

func capAttempt(c *driver.Claim, found *record) {
	if found != nil && found.Verdict == driver.VerdictRetry {
		c.Attempt = min(c.Attempt, found.Attempt)
	}
}
