package fence

import (
	"sync"
	"time"
)

// clock estimates the store's time from its answers and notices jumps.
//
// An answer read at local time r says that the store's clock was Now before r,
// so Now - r is at most the true offset. The largest of these within the jump
// margin is the best one.
type clock struct {
	mu     sync.Mutex
	known  bool
	base   time.Time     // local, monotonic
	offset time.Duration // store micros = Micros(base) + (local - base) + offset
	calm   time.Time     // no takeovers before this local time
}

// estimate returns the store's time in microseconds, and whether takeovers are
// allowed now.
func (c *clock) estimate(now time.Time) (micros int64, takeovers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0, false
	}
	return c.local(now) + c.offset.Microseconds(), !now.Before(c.calm)
}

func (c *clock) local(now time.Time) int64 {
	return c.base.UnixMicro() + now.Sub(c.base).Microseconds()
}

// observe takes an answer's clock into account. sent and read frame the
// request; lease is the longest one in use, margin the jump that is tolerated.
// It reports a jump.
func (c *clock) observe(storeNow int64, sent, read time.Time, lease, margin time.Duration) (jump time.Duration) {
	if storeNow == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.known, c.base = true, read
		c.offset = time.Duration(storeNow-c.local(read)) * time.Microsecond
		return 0
	}
	sample := time.Duration(storeNow-c.local(read)) * time.Microsecond
	change := sample - c.offset
	switch {
	case change > margin, change < -margin-read.Sub(sent):
		c.offset, c.calm = sample, read.Add(lease)
		return change
	case change > 0:
		c.offset = sample
	default: // follow a slow drift
		c.offset += max(change, -time.Millisecond) / 64
	}
	return 0
}

// passed is the time since start on the monotonic or the wall clock, whichever
// went further: one of them stands still while the machine sleeps, the other
// may be set back.
func passed(start, now time.Time) time.Duration {
	return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
}
