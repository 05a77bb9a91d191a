package fence

import (
	"context"
	"sync"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Hold is a key held under a lease. The Space renews it until it is dropped.
//
// For the holder a lease ends a quarter of its length before it does for the
// store, counted from before the claim or its last renewal was sent, on the
// monotonic or the wall clock, whichever says so first. A lease that ended is
// renewed on the same terms: as long as nobody took over, the holder may still
// write its outcome.
type Hold struct {
	space   *Space
	key     Key
	token   uint64
	lease   time.Duration
	granted driver.Record
	record  *driver.Record // granted, or a later attempt under the same claim

	place int // in Space.holds, guarded by Space.mu; -1 when it is not there

	mu       sync.Mutex
	sent     time.Time // before the claim or the last renewal that was answered was sent
	retry    time.Time // after a failed renewal: not before
	started  time.Time
	maxRun   time.Duration
	limited  bool // renew only until started + maxRun
	renewing bool // a renewal is under way
	told     bool // the lease ended and the holder was told
	over     bool // dropped, ended by a transition, or lost
	lost     bool // another holder has the key
	onLost   func()
}

func newHold(s *Space, key Key, granted *driver.Record, lease time.Duration, sent time.Time) *Hold {
	h := &Hold{space: s, key: key, token: granted.Token, lease: lease, granted: *granted, place: -1, sent: sent}
	h.record = &h.granted
	return h
}

// Key returns the key.
func (h *Hold) Key() Key { return h.key }

// Token returns the fencing token. Hand it to sinks that compare it.
func (h *Hold) Token() uint64 { return h.token }

// Record returns the pending record as it was granted. It must not be changed.
func (h *Hold) Record() *driver.Record { return h.record }

// End is the local time at which the lease ends for the holder; zero when it
// was lost to another holder.
func (h *Hold) End() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return time.Time{}
	}
	return h.sent.Add(h.own())
}

// own is how long a lease is for its holder.
func (h *Hold) own() time.Duration { return h.lease - margin(h.lease) }

// Live reports whether the effect may still start or go on at now, which comes
// from time.Now: both clocks are compared.
func (h *Hold) Live(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live(now)
}

func (h *Hold) live(now time.Time) bool { return !h.over && passed(h.sent, now) < h.own() }

// Started limits renewing: the effect began and runs at most maxRun. If nothing
// is heard of it, the lease is renewed for the last time before now + maxRun.
// With a maxRun of 0 or less it is not renewed at all.
func (h *Hold) Started(now time.Time, maxRun time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.maxRun, h.limited = now, maxRun, true
}

// Finished lifts that limit: the effect ended, and the lease is renewed until
// its outcome is written. Who calls it must Drop the Hold in the end.
func (h *Hold) Finished() {
	h.mu.Lock()
	due := h.limited && !h.over && passed(h.sent, h.space.now()) >= h.lease/3
	h.limited = false
	h.mu.Unlock()
	if due {
		h.space.again(h)
	}
}

// OnLost sets what is called once when the lease ends or is lost before Drop,
// at once if it is not alive now. f must not block. A call that began before
// Drop may overlap it. A lease that is renewed after its end does not call f
// again.
func (h *Hold) OnLost(f func()) {
	h.mu.Lock()
	h.onLost = f
	dead := !h.live(h.space.now())
	if dead {
		f = h.takeOnLost()
	}
	h.mu.Unlock()
	if dead && f != nil {
		f()
	}
}

// takeOnLost returns what has to be called for a lost lease, nil if nothing.
func (h *Hold) takeOnLost() func() {
	f := h.onLost
	h.onLost = nil
	if h.over && !h.lost {
		return nil
	}
	return f
}

// Context returns a context for the effect: it ends with parent, after maxRun,
// and with the lease (context.Cause then matches ErrLeaseLost). It calls Started
// and OnLost. Call cancel when the effect has returned; renewing goes on until
// maxRun after now, or Drop, so that the outcome can be written.
func (h *Hold) Context(parent context.Context, maxRun time.Duration) (ctx context.Context, cancel context.CancelFunc) {
	bounded, stop := context.WithTimeout(parent, maxRun)
	ctx, lose := context.WithCancelCause(bounded)
	h.Started(h.space.now(), maxRun)
	h.OnLost(func() { lose(ErrLeaseLost) })
	return ctx, func() {
		stop()
		lose(context.Canceled)
	}
}

// Drop stops renewing. Call it when a transition ended the claim, or when it is
// left to its lease.
func (h *Hold) Drop() {
	h.mu.Lock()
	h.over, h.onLost = true, nil
	h.mu.Unlock()
	h.space.remove(h)
}
