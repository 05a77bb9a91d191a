package fence

import (
	"context"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// One loop per Space looks at all holds. It renews a lease when a third of it
// is over, together with those that are over a quarter, so that many claims
// make few requests. The loop itself never waits for the store: each request
// has a goroutine while it is under way, so that holders are told of ended
// leases in time when the store hangs.

// renewBatch bounds one renewal request.
const renewBatch = 512

// add puts granted claims under renewal.
func (s *Space) add(holds []*Hold) {
	if len(holds) == 0 {
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		for _, h := range holds {
			h.close()
		}
		return
	}
	soonest := holds[0].lease
	for _, h := range holds {
		h.place = len(s.holds)
		s.holds = append(s.holds, h)
		soonest = min(soonest, h.lease)
	}
	early := s.now().Add(soonest / 8).Before(s.next)
	s.mu.Unlock()
	if early {
		s.nudge()
	}
}

// again puts a hold back whose limit was lifted after it had been left out.
func (s *Space) again(h *Hold) {
	s.mu.Lock()
	if h.place < 0 && !s.closed {
		h.place = len(s.holds)
		s.holds = append(s.holds, h)
	}
	s.mu.Unlock()
	s.nudge()
}

// remove takes a hold out of renewal.
func (s *Space) remove(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOut(h)
}

func (s *Space) takeOut(h *Hold) {
	if h.place < 0 {
		return
	}
	end := len(s.holds) - 1
	last := s.holds[end]
	s.holds[h.place], last.place = last, h.place
	s.holds[end] = nil
	s.holds, h.place = s.holds[:end], -1
}

func (s *Space) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// loop runs until ctx ends and waits for its requests then.
func (s *Space) loop(ctx context.Context) {
	defer close(s.done)
	defer s.requests.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.wake:
		}
		timer.Reset(s.tick(ctx))
	}
}

// tick does what is due and says how long nothing more will be.
func (s *Space) tick(ctx context.Context) time.Duration {
	now := s.now()
	s.mu.Lock()
	due, told, wait := s.look(now)
	orphans, soon := s.dueOrphans(now)
	wait = max(min(wait, soon), time.Millisecond)
	s.next = now.Add(wait)
	s.mu.Unlock()
	for _, f := range told {
		f()
	}
	for len(due) > 0 {
		batch := due[:min(len(due), renewBatch)]
		due = due[len(batch):]
		s.requests.Go(func() {
			if !s.renew(ctx, batch) {
				s.nudge() // to try again sooner than the next look
			}
		})
	}
	if len(orphans) > 0 {
		s.requests.Go(func() {
			_ = s.releaseOrphans(ctx, orphans) // what failed is tried again
			s.nudge()
		})
	}
	return wait
}

// look goes through all holds: which to renew, whom to tell that a lease ended,
// and when to look again. Those to renew are marked. Holds that are over, or
// that nobody renews any more after their end, are left out from then on.
func (s *Space) look(now time.Time) (due []*Hold, told []func(), wait time.Duration) {
	wait = time.Hour
	renew := false
	for i := 0; i < len(s.holds); i++ {
		h := s.holds[i]
		h.mu.Lock()
		age := passed(h.sent, now)
		if !h.told && age >= h.own() {
			h.told = true
			if f := h.takeOnLost(); f != nil {
				told = append(told, f)
			}
		}
		at := h.own() // of the lease, when to look at this hold again
		switch {
		case h.renewing:
		case h.over, h.told && h.limitPassed(now):
			h.mu.Unlock()
			s.takeOut(h)
			i--
			continue
		case h.limitPassed(now):
		case now.Before(h.retry):
			at = age + h.retry.Sub(now)
		default:
			renew = renew || age >= h.lease/3
			if age >= h.lease/4 {
				due = append(due, h)
			}
			at = h.lease / 3
		}
		if !h.told {
			at = min(at, h.own())
		}
		if at > age {
			wait = min(wait, at-age)
		}
		wait = min(wait, h.lease/8) // to notice a wall clock that was set
		h.mu.Unlock()
	}
	if !renew {
		return nil, told, wait
	}
	for _, h := range due {
		h.mu.Lock()
		h.renewing = true
		h.mu.Unlock()
	}
	return due, told, wait
}

// limitPassed reports whether Started's maximum run time is over.
func (h *Hold) limitPassed(now time.Time) bool {
	return h.limited && passed(h.started, now) >= h.maxRun
}

func (h *Hold) renewal() driver.Transition {
	return driver.Transition{Op: driver.Renew, Key: h.key.digest, Token: h.token, Lease: h.lease}
}

// renew sends one batch of renewals, also of leases that ended: the answer
// tells whether the token is still the record's. It reports whether all were
// answered.
func (s *Space) renew(ctx context.Context, holds []*Hold) (answered bool) {
	batch := make([]driver.Transition, len(holds))
	shortest := holds[0].lease
	for i, h := range holds {
		batch[i] = h.renewal()
		shortest = min(shortest, h.lease)
	}
	reach, cancel := context.WithTimeout(ctx, max(shortest/4, MinLease))
	defer cancel()
	sent := s.now()
	answers := s.apply(reach, "renew", batch)
	read := s.now()
	renewed, lost, failed := 0, 0, 0
	for i := range answers {
		switch holds[i].answered(sent, read, &answers[i]) {
		case stillHeld:
			renewed++
		case lostToAnother:
			lost++
		case notAnswered:
			failed++
		case endedBefore:
		}
	}
	s.fence.opts.Observer.Renewed(renewed, lost)
	return failed == 0
}

// renewalEnd is what a renewal found.
type renewalEnd uint8

const (
	notAnswered renewalEnd = iota
	stillHeld
	endedBefore // by Drop or by a transition of its own
	lostToAnother
)

// answered takes the answer to a renewal that was sent at sent.
func (h *Hold) answered(sent, read time.Time, a *driver.Applied) renewalEnd {
	h.mu.Lock()
	h.renewing = false
	switch {
	case h.over:
		h.mu.Unlock()
		return endedBefore
	case a.Err != nil:
		h.retry = read.Add(max(h.lease/20, 5*time.Millisecond))
		h.mu.Unlock()
		return notAnswered
	case a.Outcome == driver.OK:
		h.sent, h.retry = sent, time.Time{}
		h.told = h.told && !h.live(read)
		h.mu.Unlock()
		return stillHeld
	}
	// Refused. A record that carries our token was ended by our own transition,
	// whose answer the holder has not read yet.
	own := a.Record.Token == h.token || a.Record.ReleasedToken == h.token
	h.over, h.lost = true, !own
	f := h.takeOnLost()
	h.mu.Unlock()
	h.space.remove(h)
	if f != nil {
		f()
	}
	if own {
		return endedBefore
	}
	return lostToAnother
}

// close ends a hold that nobody renews any more.
func (h *Hold) close() {
	h.mu.Lock()
	dropped := h.over
	f := h.onLost
	h.over, h.lost, h.onLost = true, h.lost || !dropped, nil
	h.mu.Unlock()
	if !dropped && f != nil {
		f()
	}
}
