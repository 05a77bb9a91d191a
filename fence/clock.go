package fence

import (
	"sync"
	"time"
)

// clock estimates the store's time from its answers and notices jumps.
//
// An answer that says Now, asked at local time sent and read at read, was
// decided in between: the store's clock is ahead of the local one by at least
// Now - read and at most Now - sent. offset follows these bounds and stays at
// the lower one, so the estimate is never ahead of the store by more than one
// round trip.
//
// Takeovers trust only floor, the lowest offset of the last lease: after a jump
// forward nobody takes over until every holder that was alive before it has
// had a lease to renew.
type clock struct {
	mu     sync.Mutex
	known  bool
	base   time.Time     // local
	offset time.Duration // store's microseconds = base + monotonic time since + offset
	floor  time.Duration
	low    time.Duration // the lowest offset since turned
	turned time.Time
	lease  time.Duration // the longest one in use
	warned time.Time
}

// estimate returns the store's time in microseconds, and the earlier one that
// takeovers go by. Both are 0 before the first answer.
func (c *clock) estimate(now time.Time) (micros, trusted int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0, 0
	}
	c.turn(now)
	return c.local(now) + c.offset.Microseconds(), c.local(now) + c.floor.Microseconds()
}

// local follows the monotonic clock, so that setting the wall clock is no jump.
func (c *clock) local(now time.Time) int64 {
	return c.base.UnixMicro() + now.Sub(c.base).Microseconds()
}

func (c *clock) turn(now time.Time) {
	if now.Sub(c.turned) >= c.lease {
		c.floor, c.low, c.turned = c.low, c.offset, now
	}
}

// observe takes an answer's clock into account. lease is the longest one in
// use, margin the jump that is tolerated. It returns a jump that is worth a
// warning, at most one in a lease.
func (c *clock) observe(storeNow int64, sent, read time.Time, lease, margin time.Duration) (jump time.Duration) {
	if storeNow == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease = lease
	if !c.known {
		c.known, c.base, c.turned = true, read, read
		c.offset = time.Duration(storeNow-c.local(read)) * time.Microsecond
		c.floor, c.low = c.offset, c.offset
		return 0
	}
	c.turn(read)
	lower := time.Duration(storeNow-c.local(read)) * time.Microsecond
	upper := time.Duration(storeNow-c.local(sent)+2) * time.Microsecond // both were rounded
	switch {
	case lower > c.offset:
		c.offset = lower
		if grown := lower - c.low; grown > margin {
			c.low, c.turned, jump = lower, read, grown // floor stays for one lease
		}
	case upper < c.offset:
		if back := upper - c.offset; back < -margin {
			jump = back
		}
		c.offset = lower
		c.floor, c.low = min(c.floor, lower), min(c.low, lower)
	}
	if jump != 0 && !c.warned.IsZero() && read.Sub(c.warned) < lease {
		return 0
	}
	if jump != 0 {
		c.warned = read
	}
	return jump
}

// passed is the time since start on the monotonic or the wall clock, whichever
// went further: one of them stands still while the machine sleeps, the other
// may be set back.
func passed(start, now time.Time) time.Duration {
	return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
}

// margin is how much earlier than the store a holder sees its lease end, and
// the jump of the store's clock that is tolerated.
func margin(lease time.Duration) time.Duration { return lease / 4 }
