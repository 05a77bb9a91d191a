package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// group is the holds of one claim batch: they were sent together, so they are
// renewed together.
type group struct {
	holds   []Hold
	sent    time.Time // of the claim or of the last renewal that was answered
	retry   time.Time // not before, after a failed renewal
	lease   time.Duration
	expired bool // the leases ended locally and the holders were told
}

// orphan is a claim whose answer never came.
type orphan struct {
	key   driver.Digest
	nonce driver.Nonce
	until int64 // store time after which the claim cannot arrive any more
}

// renewBatch bounds one renewal request.
const renewBatch = 512

func (s *Space) add(g *group) {
	s.mu.Lock()
	s.groups = append(s.groups, g)
	first := len(s.groups) == 1 || g.lease < s.lease
	s.mu.Unlock()
	if first {
		s.nudge()
	}
}

func (s *Space) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// renewals is the one loop that renews leases, tells holders of ended ones and
// releases orphans.
func (s *Space) renewals(ctx context.Context) {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(s.tick(ctx, time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.wake:
		}
	}
}

// tick does what is due and says how long nothing more will be.
func (s *Space) tick(ctx context.Context, now time.Time) time.Duration {
	s.mu.Lock()
	due := s.dueGroups(now)
	orphans := len(s.orphans)
	s.mu.Unlock()
	for _, g := range due {
		s.renew(ctx, g, now)
	}
	if orphans > 0 {
		_ = s.releaseOrphans(ctx, now) // tried again at the next tick
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := time.Hour
	now = time.Now()
	for _, g := range s.groups {
		next := g.sent.Add(g.lease / 3)
		if g.retry.After(next) {
			next = g.retry
		}
		if end := g.sent.Add(g.lease - margin(g.lease)); !g.expired && end.After(now) && end.Before(next) {
			next = end
		}
		wait = min(wait, max(next.Sub(now), time.Millisecond))
	}
	if len(s.orphans) > 0 {
		wait = min(wait, 100*time.Millisecond)
	}
	return wait
}

// dueGroups drops groups that are over, tells the holders of leases that ended,
// and returns the groups to renew.
func (s *Space) dueGroups(now time.Time) (due []*group) {
	alive := s.groups[:0]
	for _, g := range s.groups {
		over := true
		for i := range g.holds {
			over = over && g.holds[i].ended.Load()
		}
		if over {
			continue
		}
		alive = append(alive, g)
		age := passed(g.sent, now)
		if age >= g.lease-margin(g.lease) && !g.expired {
			g.expired = true
			for i := range g.holds {
				g.holds[i].end.Store(now.UnixNano() - 1)
				g.holds[i].lose()
			}
		}
		if age >= g.lease/3 && !now.Before(g.retry) {
			due = append(due, g)
		}
	}
	clear(s.groups[len(alive):])
	s.groups = alive
	return due
}

// renew sends one group's renewals. An ended lease is renewed on the same
// terms, which tells whether the token is still the record's.
func (s *Space) renew(ctx context.Context, g *group, now time.Time) {
	var holds []*Hold
	var batch []driver.Transition
	for i := range g.holds {
		h := &g.holds[i]
		limit := h.limit.Load()
		if h.ended.Load() || h.end.Load() == 0 || (limit != 0 && now.UnixNano() > limit) {
			continue
		}
		holds = append(holds, h)
		batch = append(batch, driver.Transition{Op: driver.Renew, Key: h.key.Digest(), Token: h.token, Lease: h.lease})
	}
	renewed, lost, failed := 0, 0, false
	for start := 0; start < len(batch); start += renewBatch {
		end := min(start+renewBatch, len(batch))
		sent := time.Now()
		reach, cancel := context.WithTimeout(ctx, max(g.lease/3, 100*time.Millisecond))
		answers := s.apply(reach, "renew", batch[start:end])
		cancel()
		for i, a := range answers {
			h := holds[start+i]
			switch {
			case a.Err != nil:
				failed = true
			case a.Outcome == driver.OK:
				renewed++
				if end := sent.Add(h.lease - margin(h.lease)).UnixNano(); end > h.end.Load() {
					h.end.Store(end)
				}
			case !h.ended.Load():
				lost++
				h.end.Store(0)
				h.lose()
			}
		}
	}
	if failed {
		g.retry = now.Add(max(g.lease/20, 5*time.Millisecond))
	} else {
		g.sent, g.retry, g.expired = now, time.Time{}, false
	}
	if len(batch) > 0 {
		s.fence.opts.Observer.Renewed(renewed, lost)
	}
}

// releaseOrphans releases claims whose answer never came. A release that finds
// nothing is repeated until the claim cannot arrive any more.
func (s *Space) releaseOrphans(ctx context.Context, _ time.Time) error {
	s.mu.Lock()
	orphans := s.orphans
	s.orphans = nil
	s.mu.Unlock()
	if len(orphans) == 0 {
		return nil
	}
	seen := make(map[driver.Digest]bool, len(orphans))
	var batch []driver.Transition
	var sentFor, left []orphan
	for _, o := range orphans {
		if seen[o.key] || len(batch) == renewBatch {
			left = append(left, o)
			continue
		}
		seen[o.key] = true
		batch = append(batch, driver.Transition{Op: driver.Release, Key: o.key, Nonce: o.nonce})
		sentFor = append(sentFor, o)
	}
	reach, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var err error
	for i, a := range s.apply(reach, "apply", batch) {
		if a.Err != nil {
			err = a.Err
		}
		if a.Err != nil || (a.Outcome != driver.OK && a.Now <= sentFor[i].until) {
			left = append(left, sentFor[i])
		}
	}
	if len(left) == 0 {
		return nil
	}
	s.mu.Lock()
	s.orphans = append(s.orphans, left...)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("release %d claims whose answer never came: %w", len(left), err)
	}
	return nil
}
